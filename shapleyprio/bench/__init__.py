"""Speed and memory of the service, measured on the machine it is to run on."""
