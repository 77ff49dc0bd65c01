-- Keeps users from changing the nice of waiting jobs; see nice.conf. Beside slurm.conf, with
-- JobSubmitPlugins=lua there. slurmctld reads it anew when it changes. A site that has such a
-- file already takes the lines over into its own slurm_job_modify.

-- Numbers of the users that may: root, SlurmUser (`id -u slurm`) and the daemon's user
-- (`id -u shapleyprio`), which must be here or its writes are refused as well.
local MAY_CHANGE_NICE = { [0] = true, [64030] = true, [998] = true }

function slurm_job_submit(job_desc, part_list, submit_uid)
   return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   if job_desc.nice ~= slurm.NO_VAL and not MAY_CHANGE_NICE[modify_uid] then
      slurm.log_user("The nice of a job can be chosen when it is submitted, not afterwards.")
      return slurm.ESLURM_ACCESS_DENIED
   end
   return slurm.SUCCESS
end
