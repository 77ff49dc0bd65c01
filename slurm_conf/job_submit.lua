-- Gives new jobs their points (shapleyprio_points.lua), and keeps users from changing the nice of
-- waiting jobs (nice.conf). Beside slurm.conf, with JobSubmitPlugins=lua there. slurmctld reads it
-- anew when it changes. A site that has such a file already takes lines over: see README.md.

-- Numbers of the users that may change nice: root, SlurmUser (`id -u slurm`) and the daemon's user
-- (`id -u shapleyprio`), which must be here or its writes are refused as well.
local MAY_CHANGE_NICE = { [0] = true, [64030] = true, [998] = true }

-- The module lies beside this file. Without it jobs get no points at submission.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "") .. "?.lua;" .. package.path
local there, points = pcall(require, "shapleyprio_points")

function slurm_job_submit(job_desc, part_list, submit_uid)
   if there then
      points.submit(job_desc)
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   if job_desc.nice ~= slurm.NO_VAL and not MAY_CHANGE_NICE[modify_uid] then
      slurm.log_user("The nice of a job can be chosen when it is submitted, not afterwards.")
      return slurm.ESLURM_ACCESS_DENIED
   end
   if there then
      points.modify(job_desc, job_rec)
   end
   return slurm.SUCCESS
end
