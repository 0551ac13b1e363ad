"""From edges to a graph file, in bounded memory.

``converter`` checks what was asked for and runs the steps of ``pipeline``, in this order:

1. read            ``edge_runs`` keeps edges in memory, or on disk in sorted runs; all of them,
                   or those that ``sample`` chooses
2. name_vertices   ``ids`` decides which ids are vertices
3. sort            ``key_sorter`` sorts keys; ``sorted_edges`` is what remains
4. choose_order    ``ordering`` makes orders and compares them on a sample; ``local_order`` and
                   ``community_order`` need the edges
5. write           ``row_writer`` encodes rows and appends them to the container

All steps share ``resources``: memory, which ``plan`` divides, and temporary files, from ``spill``,
in which sorted keys are ``packed``.
"""
