"""The worker's side of the Open Responses door: a run whose input is a `response.received` (design 3.6).

    asked       what the client wants, read from the event
    prepared    all that is read for it at once:
      chain       what was said before it: inputs and outputs of the responses it goes on from, from the database
      items       these items as a model can take them
      returned    calls of the client's tools, closed in the record when their outputs come back
    rosters     a team as this one request sees it: tools, instructions, settings
      tools       the request's tools: the client's own end the run, hosted ones run here
      form        the form an answer is wanted in
    reply       what the attempt that executes such a run does differently; `runner` asks it
      steps       hooks that hold a run to its request: `tool_choice`, limits
      answer      what the client is answered: the `response.completed` before the run's end
    plain       the built-in team for requests that name a model and no agent

The SDK's session is not used for these runs: the chain is their memory. The team's context is.
"""
