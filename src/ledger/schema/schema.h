/* schema.h - the numbered .sql files of this folder, as they are built into the program. */
#pragma once

/* The schema that this program writes: how many files there are. */
extern const int ledger_schema_version;

/* ledger_schema[n] takes a ledger of version n to version n + 1. */
extern const char *const ledger_schema[];
