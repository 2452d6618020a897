/** Enter in the field for the reason to reject. */
import { composes } from "./keys.js";

/** Enter rejects in the field for the reason to reject; in other fields it submits nothing: the form's first button is disabled. */
export const rejectByEnter = (event) => {
  const { form, name } = event.target;
  if (event.key === "Enter" && name === "message" && !composes(event)) form.requestSubmit(form.querySelector("button[value=reject]"));
};
