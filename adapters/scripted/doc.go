// Package scripted is a model that plays a scenario: a file of rules. It is no
// recording. For every request it reads what the request holds (the user's
// words, the tools offered, the results of the tools called) and answers by the
// first rule that fits, so a tool result that is wrong leads elsewhere than one
// that is right. The same request always gets the same chunks; nothing is kept
// between requests.
//
//	s, err := scripted.Parse("demo.yml", data)
//	a := scripted.New(s)
//
// # The file
//
// YAML or JSON:
//
//	models: [storyteller]       # the catalogue; default [scripted]
//	delayMs: 0                  # pause before each chunk, at most 10000
//	rules:
//	  - name: check the total   # for error messages
//	    when:                   # all must hold; no condition always holds
//	      user: '(?i)total of (?P<what>\w+)'   # regexp on the last user text
//	      tool: sum_invoices    # the request ends in a result of this tool
//	      result: 'dyn-\d+'     # regexp on that result's text
//	      failed: false         # whether that result is an error
//	      offered: [cordis_mount]   # tools the request offers …
//	      missing: [sum_invoices]   # … and does not offer
//	      if: result.total != sum(result.rows, money(it.raw))
//	    let:                    # names for later expressions, in order
//	      right: sum(result.rows, money(it.raw))
//	    reasoning: The total should be {{fixed(right, 2)}}.
//	    text: That is wrong, I will mend it.
//	    calls:
//	      - tool: cordis_unmount
//	        args: {id: '{{match(last(results("cordis_mount")), "dyn-[0-9]+")}}'}
//
// Named groups of the two regexps are names for expressions too. A rule has a
// text, a reasoning or calls, or several of them. Strings in text, reasoning and
// args are templates: {{expression}} is replaced by its value, and a string of
// args that is one expression and nothing else becomes that value with its
// type. {{"{{"}} stands for the two braces themselves.
//
// # Expressions
//
// Values are those of JSON. Operators: || && ! == != < <= > >= + - * / %, with
// the usual precedence; + joins strings. Two numbers are equal if they differ by
// less than a millionth. a.b and a[i] read members; what is not there is null.
//
//	user               the last user text
//	turn, step         count from 1: user messages; requests since the last one
//	tool, result, text, failed
//	                   of the tool result the request ends in: the tool's name,
//	                   the value (its text read as JSON, else the text itself),
//	                   the text, whether it is an error; "", null, "", false
//	                   when it ends in none
//	tools              the names of the tools offered
//	called(name)       how often the tool was called since the last user text
//	results(name)      the values of its results since then
//	first(l) last(l) len(v)
//	sum(l, e) map(l, e) filter(l, e) all(l, e) any(l, e)
//	                   over a list; e reads each member as it; sum(l) takes numbers
//	join(l, sep)       a string
//	money(s)           the amount written in a text: 1,234.50 1.234,50 1'234 12 000;
//	                   null without one
//	number(v)          a number of a plain decimal text, null without one
//	fixed(n, d)        a string with d decimals; grouped(n, d): 1,234.50
//	contains(a, b)     a text in a text, or a value in a list
//	match(s, "re", g)  the match or its group g (default 0), null without one
//	json(v)            the value as JSON text
//
// # Errors
//
// Parse says INVALID_SCENARIO with file:line:column and what was expected; a
// file is bounded at 1 MiB, 1000 rules and nesting of 64. While playing, an
// expression that cannot be computed is INVALID_SCENARIO with its place, and a
// request that no rule fits is NO_RULE, which tells what was looked at. An
// expression takes at most a million steps.
//
// A Scenario is immutable, an Adapter safe for concurrent use.
package scripted
