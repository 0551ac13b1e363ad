"""Small reaches: tables of what is touched, single rows from memory or disk, searches on both."""
