"""The work of replay, audit and report; numpy is imported from here on."""
