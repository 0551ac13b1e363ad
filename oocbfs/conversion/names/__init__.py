"""Numbers for names, in bounded memory.

Names get numbers in tables of hashes as they come. When the tables are full, their names are sorted
and written out as runs, and a new *generation* of tables begins; edges wait in the numbers of their
generation. At the end all runs are merged into the list of distinct names, which is the order of
the vertices. The merge notes for each name of each run which vertex it is, and the edges are read
once more, generation by generation, to get their final numbers.
"""
