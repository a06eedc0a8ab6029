/* caisson.pml - two keepers, their workers, one ledger and one run: nothing twice, nothing lost, whatever dies or comes late.
 *
 * All that a process knows is in the variables below, and what it does between two things that another could notice is one atomic:
 * so a crash is an assignment. README.md says which function each step stands for, and what is left out. A guard is taken out by
 * -DNO_…: then one of the assertions must fail. */

#ifndef CRASHES
#define CRASHES 2   /* of a keeper (kill -9) or of a worker */
#endif
#ifndef EXPIRIES
#define EXPIRIES 2  /* a lease that nobody renewed for its time to live */
#endif
#ifndef LOSSES
#define LOSSES 1    /* answers of a worker or of the ledger that never come */
#endif
#define ATTEMPTS 3
#define KEEPERS 2
#define OWNERS (KEEPERS + CRASHES) /* a keeper that comes back is another owner */

#define ME drive[me] /* the drive that a step is about */
#include "life.pml"
#include "guards.pml"
#include "transitions.pml" /* made by print_transitions from the table of the program */

/* --- the ledger --------------------------------------------------------------------------------------------------------------- */

typedef Attempt {
	byte row = QUEUED;        /* its state, as the ledger has it */
	byte owner, generation;   /* the lease */
	bool failed;              /* its records tell of a step that failed by itself */
	bool over;                /* unchanged for its time to live, as another keeper has seen */
	byte handed               /* ghost: how often it was handed on; what `generation` is there to tell */
}

Attempt attempt[ATTEMPTS];
byte attempts;            /* how many there are */
byte intent;              /* the attempt of the launch intent, from 1; 0: none */
bool cancelled, sealed;   /* the run */

#define LAST attempt[attempts - 1]
#define ENDED(a) (attempt[a].row == SEALED || attempt[a].row == ABANDONED)

/* --- the host ----------------------------------------------------------------------------------------------------------------- */

#define ABSENT 0
#define MADE 1            /* groups and places, no process */
#define GATED 2           /* main waits at the gate */
#define OPEN 3            /* guest code runs */
#define OVER 4            /* no process left, the rest still there */

byte boundary[ATTEMPTS];  /* each attempt has one of its own */
bool stuck;               /* one that cannot be removed: it stays in quarantine */

/* --- keepers: a driver and a recovery each, the same conveyor ----------------------------------------------------------------- */

byte owner_of[KEEPERS];

typedef Life {
	byte state = QUEUED;
	byte failed;             /* NO_STEP, or whether the step that failed was the fence */
	byte stop;               /* the first cause */
	bool intent, terminating, killing, cleaned, lost, requeue
}

typedef Drive {
	bool on;
	byte number;             /* of its attempt, from 0 */
	byte generation, handed; /* of the lease that it holds */
	Life life;
	byte act, then;          /* what the lifecycle told it to do */
	bool asked;              /* the worker has the order for `act` */
	bool heard               /* the cancellation */
}

Drive drive[4];           /* 0, 1: the drivers of keeper 0 and 1; 2, 3: their recoveries */

#define KEEPER (me % KEEPERS)
#define OWNER owner_of[KEEPER]
#define DRIVER (me < KEEPERS)
#define MINE attempt[ME.number]
#define MY_BOUNDARY boundary[ME.number]

/* --- workers: one at a time for each owner ------------------------------------------------------------------------------------ */

#define NO_ORDER DO_NOTHING

#define NO_REPLY 0
#define DONE 1
#define FAILED 2

typedef Worker {
	bool holds;              /* it was told of an attempt, and lives */
	bool dead;               /* its keeper has lost it; while it `holds`, the kill has not come through */
	bool left;               /* its keeper is dead */
	byte number, handed;
	byte order;              /* not begun yet */
	bool late;               /* the deadline of the order has passed */
	byte reply
}

Worker worker[OWNERS];
#define HIS worker[owner_of[KEEPER]]

/* --- what may go wrong, and what must not ------------------------------------------------------------------------------------- */

byte crashes, expiries, losses;
bool started;

byte launches;
bool cancelled_first;     /* the cancellation was durable, and no launch intent was */
bool stale_intent, stale_write, stale_effect, no_such_move, launch_without_intent, launch_of_cancelled;
bool receipt_not_empty, receipt_of_another, receipt_forgets_cancel;

/* Somebody else has the attempt by now, or it has ended. */
#define STALE(a, h) (attempt[a].handed != h || ENDED(a))

#define SETTLED (sealed || (stuck && LAST.row == QUARANTINED))

/* Of a step: how its drive ends, if it does. */
#define FINISHED 1
#define UNFINISHED 2

/* --- transactions of the ledger ----------------------------------------------------------------------------------------------- */

/* What came of a commit, and what its caller hears. */
inline commit()
{
	if
	:: committed = true; told = true
	:: losses < LOSSES -> losses++; committed = true; told = false
	:: losses < LOSSES -> losses++; committed = false; told = false
	fi
}

inline write(state)
{
	d_step {
		stale_write = STALE(ME.number, ME.handed); assert(!stale_write);
		MINE.row = state;
		if
		:: ENDED(ME.number) -> MINE.owner = 0; MINE.generation = 0; MINE.failed = false; MINE.over = false; MINE.handed = 0
		:: else
		fi
	}
}

inline forget_worker(w)
{
	d_step {
		w.holds = false; w.dead = false; w.left = false; w.number = 0; w.handed = 0;
		w.order = NO_ORDER; w.late = false; w.reply = NO_REPLY
	}
}

inline forget_drive()
{
	d_step {
		ME.on = false; ME.number = 0; ME.generation = 0; ME.handed = 0; ME.act = DO_NOTHING; ME.then = DO_NOTHING;
		ME.asked = false; ME.heard = false; ME.life.state = QUEUED; ME.life.failed = NO_STEP; ME.life.stop = NO_CAUSE;
		ME.life.intent = false; ME.life.terminating = false; ME.life.killing = false; ME.life.cleaned = false;
		ME.life.lost = false; ME.life.requeue = false
	}
}

/* Its keeper is dead, or done with it: it takes down what it made, and goes. Or it dies of that. */
inline leave(w)
{
	if
	:: !stuck -> boundary[w.number] = ABSENT
	:: true
	fi;
	forget_worker(w)
}

/* The drive is over. Unless all is done its worker has still to take down what it made. */
inline end_drive(unfinished)
{
	if
	:: DRIVER && HIS.order != NO_ORDER -> skip /* it is killed, and still at it */
	:: DRIVER && HIS.order == NO_ORDER && HIS.holds && unfinished -> leave(HIS)
	:: DRIVER && HIS.order == NO_ORDER && !(HIS.holds && unfinished) -> forget_worker(HIS)
	:: else
	fi;
	forget_drive()
}

inline hold_lease()
{
	d_step { ME.on = true; ME.number = attempts - 1; ME.generation = LAST.generation; ME.handed = LAST.handed }
}

inline claim()
{
	commit();
	if
	:: committed -> attempts++; LAST.owner = OWNER; LAST.generation = 1
	:: else
	fi;
	if
	:: told && cancelled -> hold_lease(); event = EV_STOP; cause = CANCEL; ME.heard = true
	:: told && !cancelled -> hold_lease(); event = EV_ADMIT
	:: told && !cancelled -> hold_lease(); event = EV_REFUSE
	:: !told
	fi
}

/* A recovery begins with what the ledger says. */
inline restore()
{
	hold_lease();
	ME.life.state = LAST.row;
	ME.life.intent = (intent == attempts);
	ME.life.failed = (LAST.failed -> OTHER_STEP : NO_STEP);
	ME.life.stop = (cancelled -> CANCEL : NO_CAUSE);
	ME.heard = cancelled;
	event = EV_RECOVERY_STARTED
}

inline hand_on()
{
	commit();
	if
	:: committed -> LAST.owner = OWNER; LAST.generation = NEXT_GENERATION; LAST.handed++; LAST.over = false; WAS_OVER(false)
	:: else
	fi;
	if
	:: told -> restore()
	:: else
	fi
}

inline commit_intent()
{
	if
	:: !INTENT_FENCED -> ends = UNFINISHED
	:: INTENT_FENCED && !INTENT_UNCANCELLED -> event = EV_STOP; cause = CANCEL; ME.heard = true
	:: INTENT_FENCED && INTENT_UNCANCELLED && !FIRST_INTENT -> event = EV_STEP_FAILED; step = FENCE
	:: INTENT_FENCED && INTENT_UNCANCELLED && FIRST_INTENT ->
		commit();
		if
		:: committed -> stale_intent = STALE(ME.number, ME.handed); assert(!stale_intent); intent = ME.number + 1
		:: else
		fi;
		if
		:: DURABLE -> event = EV_INTENT_DURABLE
		:: else -> event = EV_STEP_FAILED; step = FENCE
		fi
	fi
}

inline append(state)
{
	committed = false; told = false;
	if
	:: APPEND_FENCED ->
		commit();
		if :: committed -> MINE.failed = (ME.life.failed != NO_STEP && !ME.life.lost); write(state) :: else fi
	:: else
	fi
}

inline abandon()
{
	if
	:: !ABANDON_FENCED || !ABANDON_UNLAUNCHED -> ends = UNFINISHED
	:: ABANDON_FENCED && ABANDON_UNLAUNCHED ->
		commit();
		if :: committed -> write(ABANDONED) :: else fi;
		if
		:: told -> event = EV_ABANDONED
		:: else -> ends = UNFINISHED
		fi
	fi
}

inline seal()
{
	if
	:: !SEAL_FENCED -> ends = UNFINISHED
	:: SEAL_FENCED && !CANCEL_HEARD -> event = EV_STOP; cause = CANCEL; ME.heard = true
	:: SEAL_FENCED && CANCEL_HEARD ->
		commit();
		if
		:: committed ->
			receipt_not_empty = (boundary[0] != ABSENT || boundary[1] != ABSENT || boundary[2] != ABSENT);
			assert(!receipt_not_empty);
#ifndef LAUNCHES_ALONE
			receipt_of_another = (launches > 0 && intent != ME.number + 1); assert(!receipt_of_another);
#endif
			receipt_forgets_cancel = (cancelled && ME.life.stop == NO_CAUSE); assert(!receipt_forgets_cancel);
			write(SEALED);
			sealed = true;
			/* What is still under way is stale, whatever came before: no need to tell these apart. */
			crashes = CRASHES; expiries = EXPIRIES; losses = LOSSES; cancelled = true; cancelled_first = false
		:: else
		fi;
		if
		:: told -> event = EV_SEALED
		:: else -> ends = UNFINISHED
		fi
	fi
}

/* --- the conveyor ------------------------------------------------------------------------------------------------------------- */

#define NO_EVENT 99

#define BY_ORDER (ME.act == DO_PREPARE || ME.act == DO_CREATE_SUSPENDED || ME.act == DO_LAUNCH)
#define AT_ONCE (ME.act == DO_ENROLL || ME.act == DO_DRAIN || ME.act == DO_CLEANUP || ME.act == DO_VERIFY_EMPTY || \
	ME.act == DO_TERMINATE || ME.act == DO_KILL)
#define WAITS (ME.asked || ME.act == DO_OBSERVE || ME.act == DO_RECOVER || ME.act == DO_SEAL || ME.act == DO_ABANDON)
#define STOPPABLE (ME.life.state != QUARANTINED && ME.life.state != RECOVERING && ME.life.state != SEALED)
#define LISTENS (ME.on && !ME.asked && (BY_ORDER || ME.act == DO_ENROLL || ME.act == DO_COMMIT_INTENT || ME.act == DO_DRAIN || \
	ME.act == DO_CLEANUP || ME.act == DO_VERIFY_EMPTY))
#define RECOVERS (!DRIVER && !ME.on && attempts > 0 && !ENDED(attempts - 1) && !SETTLED)

inline next_act() { ME.act = ME.then; ME.then = DO_NOTHING }

/* The worker is gone, or does not answer in time and is killed. */
inline no_answer()
{
	ME.asked = false;
	if
	:: ME.act == DO_CLEANUP || ME.act == DO_VERIFY_EMPTY -> event = EV_CLEANUP_FAILED
	:: ME.act == DO_KILL || ME.act == DO_TERMINATE -> next_act()
	:: else -> event = EV_BOUNDARY_LOST
	fi
}

inline answered()
{
	d_step {
		ME.asked = false;
		if
		:: HIS.reply == FAILED -> event = EV_STEP_FAILED; step = OTHER_STEP
		:: HIS.reply == DONE && ME.act == DO_PREPARE -> event = EV_PREPARED
		:: HIS.reply == DONE && ME.act == DO_CREATE_SUSPENDED -> event = EV_SUSPENDED
		:: HIS.reply == DONE && ME.act == DO_LAUNCH -> event = EV_LAUNCHED
		fi;
		HIS.reply = NO_REPLY
	}
}

/* What starts nothing: a worker that is a little late with it makes no difference to anybody. */
inline at_once()
{
	if
	:: ME.act == DO_ENROLL && MY_BOUNDARY == GATED -> event = EV_ENROLLED
	:: ME.act == DO_ENROLL -> event = EV_STEP_FAILED; step = OTHER_STEP
	:: ME.act == DO_DRAIN -> event = EV_DRAINED
	:: ME.act == DO_TERMINATE -> next_act()
	:: ME.act == DO_KILL -> MY_BOUNDARY = (MY_BOUNDARY == GATED || MY_BOUNDARY == OPEN -> OVER : MY_BOUNDARY); next_act()
	:: ME.act == DO_CLEANUP && (MY_BOUNDARY == ABSENT || !stuck) -> MY_BOUNDARY = ABSENT; event = EV_CLEANED
	:: ME.act == DO_CLEANUP && MY_BOUNDARY != ABSENT -> event = EV_CLEANUP_FAILED
	:: ME.act == DO_CLEANUP && MY_BOUNDARY != ABSENT -> event = EV_CLEANED /* so it thinks */
	:: ME.act == DO_VERIFY_EMPTY -> event = (EMPTY -> EV_VERIFIED_EMPTY : EV_VERIFY_FAILED)
	fi
}

inline recover()
{
	append(RECOVERING);
	if
	:: !told -> ends = UNFINISHED
	:: told && (!stuck || MY_BOUNDARY == ABSENT) -> MY_BOUNDARY = ABSENT; event = EV_VERIFIED_EMPTY
	:: told && MY_BOUNDARY != ABSENT -> stuck = true; event = NOT_EMPTIED
	fi
}

/* What there was to wait for has come. */
inline begin()
{
	if
	/* Nothing in hand: what is queued, what others left, what was left by us. (That keeper 0 comes first loses nothing.) */
	:: DRIVER && !ME.on && !sealed && attempts < ATTEMPTS && CLAIM_QUEUED && CLAIM_UNLAUNCHED && !HIS.holds && !HIS.dead &&
	   (attempts > 0 || me == 0) -> claim()
	:: RECOVERS && LAST.owner != OWNER && MAY_TAKE_OVER -> hand_on()
	:: RECOVERS && LAST.owner != OWNER && !MAY_TAKE_OVER && MAY_EXPIRE -> hand_on()
	:: RECOVERS && LAST.owner == OWNER && !drive[KEEPER].on && REAPED -> restore()

	:: ME.on && ME.asked && HIS.reply != NO_REPLY -> answered()
	:: ME.on && ME.asked && HIS.dead -> no_answer()
	:: ME.on && ME.asked && HIS.holds && losses < LOSSES -> losses++;
		if
		:: HIS.order != NO_ORDER -> HIS.dead = true
		:: else -> forget_worker(HIS); HIS.dead = true
		fi;
		no_answer()

	:: ME.on && ME.act == DO_OBSERVE && HIS.holds -> MY_BOUNDARY = (MY_BOUNDARY == OPEN -> OVER : MY_BOUNDARY); event = EV_MAIN_EXITED
	:: ME.on && ME.act == DO_OBSERVE && (HIS.dead || MY_BOUNDARY != OPEN) -> event = EV_BOUNDARY_LOST
	:: ME.on && ME.act == DO_OBSERVE && !ME.life.killing -> event = EV_STOP; cause = LIMIT
	:: ME.on && ME.act == DO_OBSERVE && cancelled && !ME.heard -> event = EV_STOP; cause = CANCEL; ME.heard = true
	:: ME.on && ME.act == DO_OBSERVE && WHEN_TERMINATING -> event = EV_GRACE_OVER
	:: ME.on && ME.act == DO_OBSERVE && !FENCE_HOLDS -> ends = UNFINISHED
	:: ME.on && ME.act == DO_OBSERVE && FENCE_HOLDS && MINE.over -> MINE.over = false

	:: ME.on && ME.act == DO_RECOVER -> recover()
	:: ME.on && ME.act == DO_ABANDON -> abandon()
	:: ME.on && ME.act == DO_SEAL -> seal()
	fi
}

/* And then as far as it goes by itself. */
inline go_on()
{
	do
	:: event != NO_EVENT -> d_step { life_step(event); event = NO_EVENT }
	:: event == NO_EVENT && !ends && LISTENS && cancelled && !ME.heard && STOPPABLE -> event = EV_STOP; cause = CANCEL; ME.heard = true
	:: event == NO_EVENT && ME.on && (BY_ORDER || AT_ONCE) && !ME.asked && HIS.dead -> no_answer()
	:: event == NO_EVENT && ME.on && AT_ONCE && !HIS.dead -> at_once()
	:: event == NO_EVENT && !ends && ME.on && BY_ORDER && !ME.asked && !HIS.dead && !FENCE_HOLDS -> ends = UNFINISHED
	:: event == NO_EVENT && ME.on && BY_ORDER && !ME.asked && !HIS.dead && FENCE_HOLDS ->
		d_step {
			MINE.over = false; /* it renews its lease, if that is time */
			HIS.holds = true; HIS.number = ME.number; HIS.handed = ME.handed; HIS.order = ME.act; ME.asked = true
		}
	:: event == NO_EVENT && !ends && ME.on && ME.act == DO_COMMIT_INTENT -> commit_intent()
	:: event == NO_EVENT && !ends && ME.on && ME.act == DO_CLEANUP && ME.life.failed == FENCE && !ME.life.intent &&
	   intent == ME.number + 1 -> event = EV_INTENT_DURABLE /* the late answer of a commit */
	:: event == NO_EVENT && !ends && ME.on && ME.act == DO_QUARANTINE -> append(QUARANTINED); ends = UNFINISHED
	:: event == NO_EVENT && ME.on && (ends || AT(SEALED) || AT(ABANDONED)) -> end_drive(ends == UNFINISHED); ends = 0
	:: event == NO_EVENT && !ends && (!ME.on || WAITS) -> break
	od
}

/* What nothing depends on any more. */
inline tidy()
{
	d_step {
		cause = NO_CAUSE; step = NO_STEP; committed = false; told = false;
		if
		:: ME.life.state > EXITED -> ME.life.terminating = false; ME.life.killing = false
		:: else
		fi;
		if
		:: ME.life.state >= CLEANED -> ME.life.failed = NO_STEP; ME.life.lost = false; ME.life.cleaned = false
		:: else
		fi
	}
}

proctype conveyor(byte me)
{
	byte event = NO_EVENT, cause, step;
	byte ends;
	bool committed, told;
end:	do
	:: atomic { begin(); go_on(); tidy() }
	od
}

/* --- a worker ----------------------------------------------------------------------------------------------------------------- */

#define W worker[me]
#define HERE boundary[W.number]

inline effect(state)
{
	stale_effect = STALE(W.number, W.handed); assert(!stale_effect);
	HERE = state; W.reply = DONE
}

inline obey()
{
	if
	:: W.order == DO_PREPARE && IN_TIME && HERE == ABSENT -> effect(MADE)
	:: W.order == DO_CREATE_SUSPENDED && IN_TIME && HERE == MADE -> effect(GATED)
	:: W.order == DO_LAUNCH && IN_TIME && HERE == GATED ->
		effect(OPEN);
		launches++; assert(launches <= 1);
		launch_without_intent = (intent != W.number + 1); assert(!launch_without_intent);
		launch_of_cancelled = cancelled_first; assert(!launch_of_cancelled)
	:: true -> W.reply = FAILED
	fi;
	W.order = NO_ORDER; W.late = false;
	if
	:: W.left -> leave(W)
	:: W.dead -> forget_worker(W)
	:: else
	fi
}

proctype worker_process(byte me)
{
end:	do
	:: atomic { W.order != NO_ORDER -> obey() }
	/* It dies. (And guest init with it, sooner or later: whoever cleans up behind it need not know which.) */
	:: atomic { !sealed && crashes < CRASHES && W.holds && !W.dead ->
		crashes++;
		if
		:: W.left -> forget_worker(W)
		:: else -> forget_worker(W); W.dead = true
		fi
	}
	od
}

/* --- what happens to them ----------------------------------------------------------------------------------------------------- */

/* An owner that neither lease nor worker speaks of any more: its number is free for the next one. */
#define FORGOTTEN(o) (!KEEPER_LIVES(o) && !worker[o].holds && !(attempts > 0 && LAST.owner == o))

/* Of an order that nobody has begun it is not known whether it was sent. */
inline crash(k)
{
	atomic {
		!sealed && crashes < CRASHES ->
		crashes++;
		me = k;
		if
		:: HIS.order != NO_ORDER && !HIS.dead && ORDERS_OUTLIVE -> HIS.left = true
		:: HIS.holds && !HIS.dead -> leave(HIS)
		:: !HIS.holds || HIS.dead -> forget_worker(HIS)
		fi;
		forget_drive(); me = k + KEEPERS; forget_drive();
		owner_of[k] = OWNERS; me = 0;
		do
		:: FORGOTTEN(me) -> break
		:: else -> me++
		od;
		owner_of[k] = me; me = 0
	}
}

proctype world()
{
	byte me;
end:	do
	:: crash(0)
	:: crash(1)
	:: atomic {
		expiries < EXPIRIES && attempts > 0 && !ENDED(attempts - 1) && !LAST.over ->
		expiries++; LAST.over = true; WAS_OVER(true);
		for (me : 0 .. OWNERS - 1) {
			if
			:: worker[me].order != NO_ORDER && worker[me].number == attempts - 1 && worker[me].handed == LAST.handed ->
				worker[me].late = true
			:: else
			fi
		}
		me = 0
	}
	:: atomic { !cancelled && !sealed -> cancelled = true; cancelled_first = (intent == 0) }
	od
}

#ifndef NP
/* Without a further crash, expiry or cancellation the run comes to its end: where nobody but the world can move, it has. */
never {
	do
	:: assert(!started || SETTLED || enabled(1) || enabled(2) || enabled(3) || enabled(4) ||
		enabled(5) || enabled(6) || enabled(7) || enabled(8))
	od
}
#endif

init {
	byte i;
	atomic {
		owner_of[1] = 1;
		run conveyor(0); run conveyor(1); run conveyor(2); run conveyor(3);
		for (i : 0 .. OWNERS - 1) { run worker_process(i) }
		i = 0;
		run world();
		started = true
	}
}
