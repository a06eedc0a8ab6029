"""write_log.py - what a machine's disk was told, in its order, and what would be left of it had the power gone: a device with a cache keeps
what it was told to flush, and may lose all that came since. QEMU's blklogwrites writes the log (the format is dm-log-writes')."""

import struct
import subprocess

SUPER = struct.Struct("<QQQI")      # magic, version, entries, bytes of a sector
ENTRY = struct.Struct("<QQQQ")      # sector, sectors, flags, bytes of data that is no sector
FLUSH, FUA, DISCARD = 1, 2, 4
LOG_BYTES = 4 << 30                 # sparse


def make(path):
    with open(path, "wb") as file:
        file.truncate(LOG_BYTES)


def entries(path):
    """How many there are by now."""
    with open(path, "rb") as file:
        return SUPER.unpack(file.read(SUPER.size))[2]


def _read(path, count):
    """The first `count` entries: (offset on the disk, bytes, flags, offset of the data in the log)."""
    with open(path, "rb") as file:
        sector = SUPER.unpack(file.read(SUPER.size))[3]
        at = sector
        for _ in range(count):
            file.seek(at)
            first, sectors, flags, _ = ENTRY.unpack(file.read(ENTRY.size))
            yield first * sector, sectors * sector, flags, at + sector
            at += sector + (0 if flags & DISCARD else sectors * sector)


def replay(path, count, base, disk):
    """Makes `disk`: base, with what of the first `count` entries was flushed. Gives the number of writes that are lost."""
    listed = list(_read(path, count))
    flushed = max((number for number, entry in enumerate(listed) if entry[2] & FLUSH), default=0)
    subprocess.run(["cp", "--sparse=always", base, disk], check=True)
    lost = 0
    with open(path, "rb") as log, open(disk, "r+b") as out:
        for number, (offset, size, flags, data) in enumerate(listed):
            if flags & DISCARD or not size:
                continue
            if number > flushed and not flags & FUA:
                lost += 1
                continue
            log.seek(data)
            out.seek(offset)
            out.write(log.read(size))
    return lost
