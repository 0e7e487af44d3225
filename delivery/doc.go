// Package delivery holds the words and the rules of bringing updates to bots:
// the update as a bot sees it, the lease and the offset of long polling, the
// limits of a queue, the errors and the clock. It knows neither SQL nor HTTP:
// its rules are functions of values, and everything that must survive a
// process is kept by the packages below it.
package delivery
