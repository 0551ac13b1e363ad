"""Programs that interrupt and fork while threads are at work."""
