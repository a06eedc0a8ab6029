#!/usr/bin/env python3
"""embed_sql.py - turns numbered .sql files into one C array of strings, in order; usage: embed_sql.py OUTPUT INPUT..."""
import sys


def array(name, text):
    """A character array: C does not promise more than 4,095 bytes for a string literal."""
    codes = [str(byte) for byte in text.encode("ascii") + b"\0"]
    rows = [",".join(codes[i:i + 24]) for i in range(0, len(codes), 24)]
    return "static const char %s[] = {\n%s\n};\n" % (name, ",\n".join(rows))


def statements(path):
    """The text without comments and indentation: it is stored in each ledger, and parsed whenever one is opened."""
    with open(path, encoding="ascii") as file:
        lines = [line.strip() for line in file]
    return "\n".join(line for line in lines if line and not line.startswith("--"))


def main(output, inputs):
    names = ["schema_%04d" % (n + 1) for n in range(len(inputs))]
    with open(output, "w", encoding="ascii") as file:
        file.write('/* Made by tools/embed_sql.py; do not edit. */\n#include "ledger/schema/schema.h"\n\n')
        for name, path in zip(names, inputs):
            file.write(array(name, statements(path)) + "\n")
        file.write("const int ledger_schema_version = %d;\n" % len(inputs))
        file.write("const char *const ledger_schema[] = {%s};\n" % ", ".join(names))


main(sys.argv[1], sys.argv[2:])
