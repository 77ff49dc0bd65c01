-- Gives a new job its organization's points as site factor, and a waiting job that changes its
-- account those of the other one. The daemon keeps them in a small table (push.table in its
-- configuration); README.md beside this file describes it.
--
-- Nothing here refuses a job: where the table is missing, too old or malformed, jobs get
-- no points from it and have them after the daemon's next cycle.

local points = {}

-- Where the table is; the same as push.table. A job_submit.lua may set another path.
points.path = "/var/spool/shapleyprio/points"

-- Bytes that are read of it, at most: each submission waits for this read.
local LONGEST = 1048576

-- Slurm's bounds for a site factor.
local LARGEST = 2147483645

local HEADER = "^shapleyprio%-points 1 written=(%d+) lasts=(%d+) accounts=(%d+)\n"

-- Returns the text of the table; or nil and what is wrong with it.
local function read_table()
   local file, why = io.open(points.path, "rb")
   if not file then
      return nil, why
   end
   local text = file:read(LONGEST + 1) or ""
   file:close()
   if #text > LONGEST then
      return nil, "longer than " .. LONGEST .. " bytes"
   end
   local written, lasts, accounts = text:match(HEADER)
   if not written then
      return nil, "it does not begin like a table of version 1"
   end
   local last = "\nend " .. accounts .. "\n"
   if text:sub(-#last) ~= last then
      return nil, "it is cut short"
   end
   local age = os.time() - tonumber(written)
   if math.abs(age) > tonumber(lasts) then
      return nil, age .. " s old"
   end
   return text
end

-- Returns the points of an account in a table, nil if it has none there.
local function find_points(text, account)
   if account:find("%c") then
      return nil
   end
   local _, tab = text:find("\n" .. account .. "\t", 1, true)
   local digits = tab and text:match("^%-?%d+\n", tab + 1)
   local number = digits and tonumber(digits)
   return number and math.max(-LARGEST, math.min(LARGEST, number))
end

local complaint = nil

-- Returns the points of an account, nil if it has none; and whether there is a table to go by.
-- Slurm's log has a line whenever that changes, not one for each job.
local function look_up(account)
   local text, why = read_table()
   if why ~= complaint then
      complaint = why
      slurm.log_info("shapleyprio: %s: %s", points.path, why or "in use again")
   end
   if not text then
      return nil, false
   end
   return find_points(text, account) or find_points(text, account:lower()), true
end

local function submit(job_desc)
   local account = job_desc.account
   if not account or account == "" then
      account = job_desc.default_account
   end
   local found = account and look_up(account)
   if found then
      job_desc.site_factor = found
   end
end

local function modify(job_desc, job_rec)
   local account = job_desc.account
   if account and account ~= "" and account ~= job_rec.account
      and job_desc.site_factor == slurm.NO_VAL then
      local found, known = look_up(account)
      if known then
         job_desc.site_factor = found or 0
      end
   end
end

local function safely(what, ...)
   local went_well, failure = pcall(what, ...)
   if not went_well then
      pcall(slurm.log_info, "shapleyprio: %s", tostring(failure))
   end
end

-- For slurm_job_submit: gives a new job its points.
function points.submit(job_desc)
   safely(submit, job_desc)
end

-- For slurm_job_modify: if the account changes, gives the job the points of the new one.
function points.modify(job_desc, job_rec)
   safely(modify, job_desc, job_rec)
end

return points
