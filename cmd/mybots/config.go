package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/webhook"
)

// config is the program's settings, read from the environment once.
type config struct {
	addr           string
	adminAddr      string
	baseURL        *url.URL
	databaseURL    delivery.Secret
	dataDir        string
	secretKey      []byte // nil: made and kept in the data folder
	dbConns        int
	outboundURL    string
	trustedProxies []netip.Prefix
	logLevel       slog.Level
	testClock      bool
	webhooksOff    bool
	guard          webhook.GuardOptions
	maxURL         string
	maxToken       delivery.Secret // "": there is no way to MAX
	maxSecret      delivery.Secret
}

// setting is one environment variable: its name, what it is when it isn't set,
// what it says, and how it is read.
type setting struct {
	name, otherwise, help string
	read                  func(c *config, value string) error
}

func settings() []setting {
	return []setting{
		{"MYBOTS_ADDR", "127.0.0.1:8080", "where pages, Bot API and intake are served: host:port", func(c *config, v string) error {
			c.addr = v
			return hostPort(v)
		}},
		{"MYBOTS_BASE_URL", "", "how browsers reach it, e.g. https://bots.example.com; with https the cookies are Secure; default http://MYBOTS_ADDR", func(c *config, v string) error {
			u, err := url.Parse(v)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
				return errors.New("must be an address like https://bots.example.com")
			}
			c.baseURL = u
			return nil
		}},
		{"MYBOTS_ADMIN_ADDR", "", "where /metrics and pprof are served: host:port; default: nowhere", func(c *config, v string) error {
			c.adminAddr = v
			return hostPort(v)
		}},
		{"MYBOTS_DATABASE_URL", "", "the PostgreSQL to use; default: one of its own in MYBOTS_DATA_DIR", func(c *config, v string) error {
			c.databaseURL = delivery.Secret(v)
			return nil
		}},
		{"MYBOTS_DATA_DIR", "data", "where its own PostgreSQL and key are kept", func(c *config, v string) error {
			dir, err := filepath.Abs(v)
			c.dataDir = dir
			return err
		}},
		{"MYBOTS_SECRET_KEY", "", "32 bytes as base64 or hex, that seal what is kept secret; the same for all replicas; needed with MYBOTS_DATABASE_URL, else made and kept in MYBOTS_DATA_DIR", func(c *config, v string) (err error) {
			c.secretKey, err = bots.ParseKey(v)
			return err
		}},
		{"MYBOTS_DB_CONNS", "20", "connections to the database at most, 4 to 500", func(c *config, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 4 || n > 500 {
				return errors.New("must be a number from 4 to 500")
			}
			c.dbConns = n
			return nil
		}},
		{"MYBOTS_OUTBOUND_URL", "", "where what bots write is passed on to the messenger; default: nowhere", func(c *config, v string) error {
			u, err := url.Parse(v)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return errors.New("must be an http or https address")
			}
			c.outboundURL = v
			return nil
		}},
		{"MYBOTS_WEBHOOKS", "on", "off: no bot can get a webhook, and none is delivered to; long polling works on", func(c *config, v string) error {
			if v != "on" && v != "off" {
				return errors.New("must be on or off")
			}
			c.webhooksOff = v == "off"
			return nil
		}},
		{"MYBOTS_WEBHOOK_ALLOW_CIDRS", "", "networks that webhooks may reach beside the public ones, e.g. 10.20.0.0/16; lifts no rule about names", func(c *config, v string) (err error) {
			c.guard.AllowCIDRs, err = prefixes(v)
			return err
		}},
		{"MYBOTS_WEBHOOK_ALLOW_PORTS", "", "ports of webhooks beside 443 and 8443, e.g. 9443,10443", func(c *config, v string) error {
			for text := range strings.SplitSeq(v, ",") {
				n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
				if err != nil || n == 0 {
					return errors.New("must be ports from 1 to 65535, separated by commas")
				}
				c.guard.AllowPorts = append(c.guard.AllowPorts, uint16(n))
			}
			return nil
		}},
		{"MYBOTS_WEBHOOK_CA_FILE", "", "a PEM file of certificate authorities that webhooks may use beside the system's", func(c *config, v string) (err error) {
			c.guard.Roots, err = webhook.LoadRoots(v)
			return err
		}},
		{"MYBOTS_WEBHOOK_RESOLVER", "", "the DNS server that webhooks' names are asked of: host:port; default: the system's", func(c *config, v string) error {
			c.guard.Resolver = v
			return hostPort(v)
		}},
		{"MYBOTS_MAX_URL", "https://platform-api2.max.ru", "where MAX's API is, by which owners get notices too; https, but for loopback", func(c *config, v string) error {
			u, err := url.Parse(v)
			if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
				return errors.New("must be an https address without user, query and fragment")
			}
			c.maxURL = v
			return nil
		}},
		{"MYBOTS_MAX_TOKEN", "", "the token of our bot at MAX; default: no notices by MAX", func(c *config, v string) error {
			c.maxToken = delivery.Secret(v)
			return visible(v, 1, 512)
		}},
		{"MYBOTS_MAX_SECRET", "", "the secret of MAX's webhook to /max/webhook, needed with MYBOTS_MAX_TOKEN", func(c *config, v string) error {
			c.maxSecret = delivery.Secret(v)
			return visible(v, 5, 256)
		}},
		{"MYBOTS_TRUSTED_PROXIES", "", "networks whose X-Forwarded-For is believed, e.g. 10.0.0.0/8,::1/128", func(c *config, v string) (err error) {
			c.trustedProxies, err = prefixes(v)
			return err
		}},
		{"MYBOTS_LOG_LEVEL", "info", "debug, info, warn or error", func(c *config, v string) error {
			if err := c.logLevel.UnmarshalText([]byte(v)); err != nil {
				return errors.New("must be debug, info, warn or error")
			}
			return nil
		}},
		{"MYBOTS_TEST_CLOCK", "0", "1: tests may move the product's clock; never in production", func(c *config, v string) error {
			if v != "0" && v != "1" {
				return errors.New("must be 0 or 1")
			}
			c.testClock = v == "1"
			return nil
		}},
	}
}

// readConfig reads the settings. All mistakes come back together, each naming
// its variable, none with a secret in it (G-01).
func readConfig(environ []string) (config, error) {
	values := map[string]string{}
	for _, line := range environ {
		if name, value, _ := strings.Cut(line, "="); strings.HasPrefix(name, "MYBOTS_") {
			values[name] = value
		}
	}
	var c config
	var wrong []string
	for _, s := range settings() {
		value := values[s.name]
		delete(values, s.name)
		if value == "" {
			value = s.otherwise
		}
		if value == "" {
			continue
		}
		if err := s.read(&c, value); err != nil {
			wrong = append(wrong, s.name+" "+err.Error())
		}
	}
	for name := range values {
		wrong = append(wrong, name+" is no setting; `mybots config` lists them")
	}
	if (c.maxToken == "") != (c.maxSecret == "") {
		wrong = append(wrong, "MYBOTS_MAX_TOKEN and MYBOTS_MAX_SECRET are needed together, or neither")
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return config{}, errors.New("the settings are wrong:\n  " + strings.Join(wrong, "\n  "))
	}
	if c.baseURL == nil {
		c.baseURL = &url.URL{Scheme: "http", Host: c.addr}
	}
	return c, nil
}

// prefixes reads networks, separated by commas.
func prefixes(v string) (list []netip.Prefix, err error) {
	for text := range strings.SplitSeq(v, ",") {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, errors.New("must be networks like 10.0.0.0/8, separated by commas")
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

func hostPort(v string) error {
	_, port, err := net.SplitHostPort(v)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("must be host:port, like 127.0.0.1:8080")
	}
	return nil
}

// visible checks a secret that goes into a header: it tells nothing of the value.
func visible(v string, least, most int) error {
	if len(v) < least || len(v) > most || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("must be %d to %d visible ASCII characters", least, most)
	}
	return nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// configHelp prints the table of settings.
func configHelp(_ context.Context, w world, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("config: what is %q?", args[0])
	}
	t := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	for _, s := range settings() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.name, s.otherwise, s.help)
	}
	return t.Flush()
}
