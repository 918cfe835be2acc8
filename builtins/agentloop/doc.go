// Package agentloop is the plugin that runs agents: it provides the services
// agents (the registry), systemPrompt (what models are told besides messages) and
// agentLoop, and creates the agents its entry declares.
//
//	# cordis.yml
//	- id: agent-loop
//	  name: agent-loop
//	  config:
//	    agents:
//	      - id: main
//	        provider: my-llm
//	        model: my-model-v1
//
// A changed configuration is taken in place: agents that stay take their options
// at their next step, new ones are created, and one that was taken out goes when
// its turn has ended.
package agentloop
