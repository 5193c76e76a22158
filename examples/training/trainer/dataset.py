"""Writes the dataset that train.py learns: all sums of two numbers of two digits, a line each.

python dataset.py sums.txt
"""

import sys
from pathlib import Path

ROWS = [f"{one:02}+{other:02}={one + other:03}\n" for one in range(100) for other in range(100)]

if __name__ == "__main__":
    Path(sys.argv[1]).write_text("".join(ROWS))
