"""How fair policies are on real logs, and what can be gained by splitting or lying."""
