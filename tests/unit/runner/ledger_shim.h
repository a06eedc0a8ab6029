/* ledger_shim.h - stands between runner and ledger: counts the transactions, makes one kind fail from its N-th call on. */
#pragma once

#include "ledger/ledger.h"

enum ledger_shim_op {
	LEDGER_SHIM_APPEND,
	LEDGER_SHIM_INTENT,
	LEDGER_SHIM_CANCEL,
	LEDGER_SHIM_RENEW,
	LEDGER_SHIM_TAKE_OVER,
	LEDGER_SHIM_ABANDON,
	LEDGER_SHIM_SEAL,
	LEDGER_SHIM_OP_COUNT
};

struct ledger_shim {
	struct ledger base;
	struct ledger *inner;
	int calls[LEDGER_SHIM_OP_COUNT];
	int fails_from[LEDGER_SHIM_OP_COUNT]; /* 1: from the first call on; 0: never */
	int code;
	char state[LEDGER_STATE_MAX];         /* the last one that was appended */
	void (*before_intent)(struct ledger *inner, void *context);
	void (*before_seal)(struct ledger *inner, void *context);
	void *context;
};

/* Takes over `inner` until base.ops->close. */
void ledger_shim_init(struct ledger_shim *shim, struct ledger *inner);
