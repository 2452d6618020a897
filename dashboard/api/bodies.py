"""Bodies of requests, read strictly. Called by the API's views."""

from typing import TypeVar

from django.http import HttpRequest
from pydantic import BaseModel, ValidationError

from conversations.errors import Invalid

Body = TypeVar("Body", bound=BaseModel)


def read(request: HttpRequest, model: type[Body]) -> Body:
    """Read a JSON body. Raises Invalid naming the first field at fault."""
    try:
        return model.model_validate_json(request.body)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise Invalid(wrong["msg"], field=".".join(map(str, wrong["loc"]))) from None
