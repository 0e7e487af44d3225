package delivery

import "time"

// The limits of the contract, each beside the clause that sets it.
const (
	MaxWaiting      = 10_000    // waiting updates of a queue
	MaxWaitingBytes = 50 << 20  // bytes of waiting payload
	MaxPayload      = 256 << 10 // bytes of one payload as stored
	MaxBatchBytes   = 4 << 20   // bytes of payload of one batch (P-17)
	MaxBatch        = 100       // updates of one batch (P-01)
	MaxPollTimeout  = 25        // seconds (P-01)
	PollsPerSecond  = 5         // getUpdates of one bot (P-03)
	MaxEvents       = 500       // events of one intake request (I-01)
	MaxIntakeBody   = 8 << 20   // bytes of one intake request (I-01)
	MaxRequestBody  = 64 << 10  // bytes of a Bot API request
	MaxConsumerID   = 64        // characters (P-01)
	MaxReason       = 256       // code points of a rejection's reason
	MaxText         = 4096      // code points of a message (I-06)
	MaxIDDigits     = len("9223372036854775807")
	LeaseTime       = 60 * time.Second   // after each answer (P-04)
	Retention       = 7 * 24 * time.Hour // of waiting and FAILED updates
	KeyRetention    = 7 * 24 * time.Hour // of idempotency keys and event ids (I-03)
	maintenanceWait = 30 * time.Second   // what MAINTENANCE asks for
)
