"""The worker's side of the Open Responses API: a run whose input is a `response.received` (§3.6).

    request             what the client wants, read from the event
    preparation         everything that is read for it at once:
      history             what was said before: inputs and outputs of earlier responses, from the database
      model_items         these items as a model can take them
      client_tool_calls   calls of the client's tools, closed in the record when their outputs come back
    request_team        a team as this one request sees it: tools, instructions, settings
      request_tools       the request's tools: the client's own end the run, hosted ones run here
      output_format       the form an answer is wanted in
      openai_parameters   what only OpenAI's own API and servers of the Responses API are sent
    response_run        what the run of a request does differently; `worker.agent_run` asks it
      response_hooks      hooks that hold a run to its request: `tool_choice`, limits
      response_builder    what the client is answered: the `response.completed` before the run's end
    plain_model_team    the built-in team for requests that name a model and no agent

The SDK's session is not used for these runs: the chain is their memory. The team's context is.
"""
