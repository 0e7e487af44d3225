package main_test

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mybots/handlers/reference/referencetest"
)

// contract is the OpenAPI document, against which every answer of the Bot API to
// these tests is held (UI-10).
var contract *referencetest.Contract

// botAPI is where the document's methods stand.
const botAPI = "/bot-api/v1/"

// checkContract holds an answer of the Bot API against the document.
func checkContract(req *http.Request, resp *http.Response, body []byte) error {
	if req.URL.Path != "/bot-api" && !strings.HasPrefix(req.URL.Path, "/bot-api/") {
		return nil // intake's
	}
	method, _ := strings.CutPrefix(req.URL.Path, botAPI)
	if err := contract.Check(method, resp.StatusCode, resp.Header, body, req.Method == http.MethodHead); err != nil {
		return fmt.Errorf("UI-10: the document says otherwise: %w", err)
	}
	return nil
}

// unseenHere are what these tests take for a failure of the product wherever it
// comes: the room of the document gets it with a broken database.
const unseenHere = "INTERNAL"

// covered says what of the document no answer has shown, once all tests have run.
func covered() error {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return nil
		}
	}
	if testing.Short() {
		return nil
	}
	var unseen []string
	for _, name := range contract.Unseen() {
		if name != "code "+unseenHere && !strings.HasPrefix(name, "field "+unseenHere+".") {
			unseen = append(unseen, name)
		}
	}
	if len(unseen) > 0 {
		return fmt.Errorf("UI-10: no answer has shown of the OpenAPI document:\n%s", strings.Join(unseen, "\n"))
	}
	return nil
}
