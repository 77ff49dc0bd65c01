"""Options that commands share, what they become, and how they are refused."""
