"""Parameters of a request that only OpenAI's own API and servers of the Responses API know. Used by `request_team`.

Other servers of Chat Completions store nothing by default, and some refuse a request with a parameter they do not know.
"""

from typing import Any

from agents import Model, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel
from agents.models.chatcmpl_helpers import ChatCmplHelpers
from agents.run_config import CallModelData, ModelInputData

from agents_app.open_responses.request import RunRequest

KEYS = ("prompt_cache_key", "safety_identifier")


def settings_for(request: RunRequest, model: Model, own: ModelSettings) -> ModelSettings:
    """Return what a request adds to an agent's own settings."""
    is_responses = isinstance(model, OpenAIResponsesModel)
    if not is_responses and not _is_openai_chat(model):
        return ModelSettings()
    include = [*(own.response_include or ()), *(request.params.get("include") or ())]
    keys = {name: request.params[name] for name in KEYS if request.params.get(name)}
    return ModelSettings(
        store=None if request.store else False,
        response_include=list(dict.fromkeys(include)) or None if is_responses else None,
        extra_args=keys or None,
    )


def resolvable_input(data: CallModelData[Any], model: Model) -> ModelInputData:
    """Return a model's input without reasoning that its server could not look up: with `store: false` it has none of
    its own items, and refuses one without content."""
    if data.agent.model_settings.store is not False or not isinstance(model, OpenAIResponsesModel):
        return data.model_data
    items = [item for item in data.model_data.input if item.get("type") != "reasoning" or item.get("encrypted_content")]
    return ModelInputData(items, data.model_data.instructions)


def _is_openai_chat(model: Model) -> bool:
    return isinstance(model, OpenAIChatCompletionsModel) and ChatCmplHelpers.is_openai(model._get_client())
