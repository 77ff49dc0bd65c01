"""The order of the organizations: what a cycle sees of the cluster, and the rows it stores."""
