"""Tables that are printed when the run is over, whichever process filled them.

With pytest-xdist the tests run in workers, and only the main process prints: `conftest.py` takes
the tables there.
"""

tables: dict[str, list[str]] = {}  # heading -> lines
