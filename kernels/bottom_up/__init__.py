"""Bottom-up on the CPU: what the steps of all engines share."""
