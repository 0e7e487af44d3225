package botapi

import (
	"errors"
	"log/slog"
	"net/http"

	"mybots/web"
)

// errGone ends a call whose caller has hung up: there is nothing to answer.
var errGone = errors.New("the caller has gone")

// respond writes the envelope of A-01 and returns the code for logs and metrics.
func respond(w http.ResponseWriter, r *http.Request, log *slog.Logger, a answer, err error) string {
	switch {
	case errors.Is(err, errGone):
		return "GONE"
	case err != nil:
		return string(web.RefuseJSON(w, r, log, err))
	}
	if a.replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	body := make([]byte, 0, len(a.result)+24)
	body = append(body, `{"ok":true,"result":`...)
	body = append(body, a.result...)
	body = append(body, '}', '\n')
	web.JSON(w, http.StatusOK, body)
	return "OK"
}
