/* life.pml - what the guards and notes of the transition table mean, as far as the model goes: src/lifecycle/rules.c, without verdicts.
 *
 * ME is the drive that takes the step. A cancellation has a grace, a limit has none. */

/* failed */
#define NO_STEP 0
#define FENCE 1
#define OTHER_STEP 2

/* stop */
#define NO_CAUSE 0
#define CANCEL 1
#define LIMIT 2

#define AT(s) ME.life.state == s
#define BECOME(s) ME.life.state = s
#define DO(first, second) ME.act = first; ME.then = second
#define NO_SUCH_MOVE no_such_move = true; assert(!no_such_move)

#define WHEN_ALWAYS true
#define WHEN_NO_INTENT !ME.life.intent
#define WHEN_INTENT ME.life.intent
#define WHEN_COMMIT_MAY_COME (!ME.life.intent && ME.life.failed != OTHER_STEP)
#define WHEN_CANCEL (cause == CANCEL)
#define WHEN_STOP_KILLS (!ME.life.killing && (cause == LIMIT || ME.life.terminating))
#define WHEN_STOP_TERMINATES (!ME.life.killing && cause == CANCEL && !ME.life.terminating)
#define WHEN_STOP_CHANGES_NOTHING ME.life.killing
#define WHEN_TERMINATING (ME.life.terminating && !ME.life.killing)
#define WHEN_KILLING ME.life.killing
#define WHEN_NOT_CLEANED !ME.life.cleaned
#define WHEN_CLEANED ME.life.cleaned
#define WHEN_REQUEUE ME.life.requeue
#define WHEN_SEAL !ME.life.requeue

#define FAIL(step) ME.life.failed = (ME.life.failed == NO_STEP -> step : ME.life.failed)
#define LOSE(step) ME.life.lost = (ME.life.lost || ME.life.failed == NO_STEP); FAIL(step)
#define STOPPED ME.life.stop = (ME.life.stop == NO_CAUSE -> cause : ME.life.stop)

#define NOTE_NOTHING skip
#define NOTE_REFUSAL FAIL(OTHER_STEP)
#define NOTE_CANCEL_OF_NOTHING STOPPED
#define NOTE_STOP STOPPED
#define NOTE_STOP_TERMINATE STOPPED; ME.life.terminating = true
#define NOTE_STOP_KILL STOPPED; ME.life.killing = true
#define NOTE_KILL ME.life.killing = true
#define NOTE_STEP_FAILED FAIL(step)
#define NOTE_INTENT ME.life.intent = true
#define NOTE_LAUNCH skip
#define NOTE_EXIT skip
#define NOTE_DRAIN skip
#define NOTE_LOST_BEFORE_LAUNCH LOSE((ME.life.state == ENROLLED -> FENCE : OTHER_STEP))
#define NOTE_LOST skip
#define NOTE_LOST_KILL ME.life.killing = true
#define NOTE_CLEANED ME.life.cleaned = true
#define NOTE_EMPTY ME.life.cleaned = true
#define NOTE_QUARANTINE skip
#define NOTE_RECOVERY \
	if :: REQUEUE_UNLAUNCHED && ME.life.stop == NO_CAUSE -> LOSE(OTHER_STEP) :: else fi; \
	ME.life.requeue = (ME.number + 1 < ATTEMPTS && ME.life.lost && REQUEUE_UNLAUNCHED && ME.life.stop == NO_CAUSE); \
	ME.life.cleaned = false
