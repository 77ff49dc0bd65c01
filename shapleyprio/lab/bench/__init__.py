"""Speed and memory of the service and of replays, measured on the machine they are to run on."""
