"""Which core on which board: every combination that makes sense by estimate, and the best of them
by place and route. ``python -m lbq_hw.explore --help``.

    candidates    cores for a board, with what each takes and how fast a host sees it: estimates
    front         those that no other core beats both in time and in cells
    place         builds a core until it is placed, with several seeds
    store         results as JSON lines, so that an exploration can be stopped and resumed
    page, table   what was found, for people
"""
