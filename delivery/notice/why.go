package notice

// Why a notice wasn't sent, or a route stopped: words for the screens' catalogs,
// some of them together, separated by spaces.
const (
	WhyStatus      = "status"      // the route answered with the HTTP code
	WhyUnreachable = "unreachable" // no connection
	WhyLost        = "lost"        // connected, and no answer came
	WhyEnded       = "ended"       // the program ended before an answer was recorded
	WhyToken       = "token"       // the route refuses our authorisation
	WhyUnusable    = "unusable"    // the route's address or the message can't be used
	WhyNoChat      = "no_chat"     // the recipient has no BotFather chat in the space any more
	WhyLastTry     = "last_try"    // it was the last try
	WhyNoTime      = "no_time"     // its 24 hours are over before the next try
	WhyOld         = "old"         // it is older than MaxAge
	WhyBotDeleted  = "bot_deleted"
	WhyUnlinked    = "unlinked"    // the owner unlinked the account
	WhyResumed     = "resumed"     // delivery isn't paused any more
	WhyNoneFailed  = "none_failed" // no update is FAILED any more
	WhyTwice       = "twice"       // the recipient has this notice already
	WhyClosed      = "closed"      // support closed it
	WhyStopped     = "stopped"     // support stopped the route
	WhyPortion     = "portion"     // the portion is sent
)

// Whys are all of them.
var Whys = []string{WhyStatus, WhyUnreachable, WhyLost, WhyEnded, WhyToken, WhyUnusable, WhyNoChat, WhyLastTry, WhyNoTime, WhyOld, WhyBotDeleted,
	WhyUnlinked, WhyResumed, WhyNoneFailed, WhyTwice, WhyClosed, WhyStopped, WhyPortion}
