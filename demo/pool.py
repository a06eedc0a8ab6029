"""pool.py - sums squares in a pool of processes."""

import multiprocessing
import os


def square(number):
    sum(range(20000))  # work enough that no process takes all of it
    return number * number, os.getpid()


if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        results = pool.map(square, range(1000), chunksize=50)
    print(f"sum of squares {sum(value for value, _ in results)}, computed by {len({pid for _, pid in results})} processes")
