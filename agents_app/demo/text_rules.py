"""The demo model's reading of a citizen's message: what they want, where, how bad, in which language. Plain rules
without clock or randomness: the same text gives the same reading. Called by `decisions` and `json_filling`."""

import re
from typing import Literal, NamedTuple

Wish = Literal[
    "incident", "feedback", "statistics", "status", "greeting", "thanks", "cancel", "question", "injection",
    "unreadable", "blank", "talk", "invite",
]  # fmt: skip
READ = 4000  # characters of a message that are read
END = 400  # of them, of a longer one, from its end

_KINDS = {  # what happened → words that tell it (beginnings of words; English, German, French, Spanish)
    "fire or gas": "fire|smoke|gas leak|smell of gas|burning|feuer|brennt|incendie|incendio",
    "traffic accident": "accident|car crash|collision|unfall|accidente",
    "water": "water (everywhere|is|runs|running)|leak|flood|burst pipe|pipes? (ha(s|ve) )?burst|sewage|sewer"
    "|drain|hydrant|rohrbruch|überschwemm|fuite|inondation|fuga|inundaci",
    "road damage": "pothole|sinkhole|road damage|damaged road|broken pavement|cracked|schlagl|nids?-de-poule|bache",
    "street light": "street ?light|street ?lamp|lamp ?post|lantern|laterne|straßenlampe|lampadaire|farola"
    r"|lamps? [^.!?\n]{0,40}\b(out|dark|broken)\b",
    "traffic light or sign": "traffic light|traffic sign|stop sign|road sign|ampel|verkehrsschild|semáforo|feu rouge",
    "waste": "trash|garbage|rubbish|litter|dump(ed|ing)|waste(?! of)|overflowing|müll|abfall|ordures|poubelle|basura",
    "vandalism": "graffiti|vandal|smashed|spray",
    "fallen tree": "tree|branch|baum|arbre|árbol",
    "theft": "stolen|stole|theft|thief|robbery|robbed|burglar|gestohlen|diebstahl|volé|robado|robo",
    "noise": "noise|noisy|loud music|lärm|bruit|ruido",
    "animal": "stray|lost (dog|cat|pet)|(dog|cat|pet) is (lost|missing)|rats?\\b|wasps|dead animal",
    "incident": "incident|hazard|broken|blocked road|dangerous|damaged|report (a|an|the)|want to report|kaputt|melden"
    "|signaler|cassé|roto|reportar",
}
_SEVERE = {"fire or gas": 5, "traffic accident": 4, "water": 4, "theft": 4, "fallen tree": 3, "road damage": 3}
_PRAISE = (
    "great|wonderful|excellent|love|fantastic|amazing|perfect|friendly|helpful|well done|good job|thank(s| you) for"
    "|i (really |very much |just )?(like|enjoy|appreciate)\\b|praise|happy|satisfied|beautiful"
    "|danke für|super|merci pour|bravo|félicitations|excelente|gracias por|felicit"
)
_COMPLAINT = (
    "complain|complaint|terrible|awful|rude|disappoint|unhappy|unacceptable|too slow|slow|worst|horrible|angry|annoyed"
    "|i (really )?(do not|don['’]?t) like|dislike|hate"
    "|frustrat|always late|unreliable|too (short|few|expensive|small|crowded)"
    "|bad service|too long|dirty|beschwer|unfreundlich|schlecht|plainte|inacceptable|déçu|queja|pésim|lento"
)
_WISHES: list[tuple[Wish, str]] = [
    ("statistics", "statistic|figures|how many|trend|insight|numbers of|overview of|statistik|wie viele|combien|cuánt"),
    ("status", "my (report|case|reference|complaint)|any news|status of|what happened to|has it been"),
]
_FEEDBACK = "feedback|opinion|suggest|i think (the|that|your)|rückmeldung|vorschlag|avis|sugerencia"
_GREETING = (
    "hello|hi|hey|good (morning|afternoon|evening)|greetings|hallo|guten tag|moin|bonjour|salut|hola|buenos|ciao|olá"
    "|привет|你好"
)
_THANKS = "thanks|thank you|thx|cheers|danke|merci|gracias|grazie|ok|okay|great|perfect|bye|goodbye|tschüss"
_CANCEL = "never mind|nevermind|cancel|forget it|forget about it|leave it|no longer|vergiss es|laisse tomber|olvídalo"
_BARE = (
    r"(?:.{0,40}\b(?:want|like|have|wish|need)\b.{0,20})?"
    r"(?:feedback|complain|complaint|(?:report|incident)( something)?)\W*"
)
_INJECTION = (
    r"(ignore|disregard|forget|override)\b.{0,40}\b(instruction|rule|prompt|above|previous|guideline)"
    r"|system prompt|you are now|act as|pretend (to be|you)|jailbreak|developer mode|<\|?(im_start|system|assistant)"
    r"|\bapprove (it|this|everything) yourself|reveal your (prompt|instructions)"
)
_LANGUAGES = {
    "de": "ich|und|der|die|das|ist|nicht|bitte|ein|eine|auf|gibt|mein|guten|hallo|danke",
    "fr": "je|est|les|des|une|dans|pas|bonjour|merci|il|y a|mon|pour|rue|sur",
    "es": "el|los|una|hay|por|favor|hola|gracias|está|en la|mi|calle|que",
}
_STREETS = (
    "street|st|road|rd|avenue|ave|lane|square|park|bridge|boulevard|blvd|drive|way|place|court|crescent|terrace|alley"
    "|hill|gardens|school|station|hall|market|library|hospital|church|playground|stop|crossing|roundabout|tunnel|mall"
)
_PLACES = [
    r"(?i:corner of\s+[\w'’.-]+(?:\s+(?:street|road|avenue|lane))?\s+and\s+[\w'’.-]+"
    r"(?:\s+(?:street|road|avenue|lane))?)",
    r"\b\d+(?:st|nd|rd|th)\s+(?:and|&)\s+[A-Z\d]\w+",
    rf"(?:\d+\w?\s+)?(?:[A-Z\d][\w'’.-]*\s+){{1,3}}(?:{_STREETS.title()})\b\.?(?:\s+\d+\w?)?",
    r"\b[A-ZÄÖÜ][\wäöüß-]*(?:straße|strasse|str\.|platz|weg|allee|gasse|brücke)(?:\s+\d+\w?)?",
    r"(?i:\b(?:rue|avenue|place|boulevard|quai|chemin|pont|calle|avenida|plaza|paseo|via|piazza|corso)"
    r"\s+(?:de\s+la\s+|de\s+los\s+|de\s+|du\s+|des\s+|del\s+|la\s+|le\s+|l['’])?)[\wÀ-ÿ'’-]+(?:\s+[A-ZÀ-Ý\d][\wÀ-ÿ'’-]*){0,3}",
    rf"(?i:\b(?:on|at|in|near|by|outside|behind|opposite|beside|under|along|in front of|next to)\s+"
    rf"(?:the\s+|our\s+|my\s+)?)(?i:(?:[\w'’-]+\s+){{0,3}}?(?:{_STREETS})\b)",
    r"(?i:\b(?:on|at|in|near|by|outside|behind|opposite|beside|along|next to)\s+(?:the\s+)?)"
    r"[A-ZÀ-Ý][\w'’-]+(?:\s+[A-ZÀ-Ý\d][\w'’-]*){0,3}",
]
_NOT_PLACES = {"january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
               "november", "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
               "english", "general", "i", "my"}  # fmt: skip


class Reading(NamedTuple):
    """The contents of one message. `kind` is set for incidents; `sentiment` is positive, negative or neutral."""

    text: str
    wish: Wish
    kind: str = ""
    place: str = ""
    severity: int = 1
    sentiment: str = "neutral"
    language: str = "en"
    is_long: bool = False


def read(text: str) -> Reading:
    """Parse a message; of a very long one, its beginning and its end: the place often comes last."""
    whole = text if len(text) <= READ else f"{text[: READ - END]} … {text[-END:]}"
    shown = " ".join(whole.split())
    kind = kind_of(shown)
    return Reading(
        text=shown,
        wish=_wish(shown, kind),
        kind=kind,
        place=place_of(shown),
        severity=_severity(shown, kind),
        sentiment=_sentiment(shown),
        language=_language(shown),
        is_long=len(text) > READ,
    )


def kind_of(text: str) -> str:
    """Return the kind of incident; empty if none is mentioned."""
    return next((kind for kind, pattern in _KINDS.items() if _has(text, pattern)), "")


def place_of(text: str) -> str:
    """Return the place; empty if none is mentioned."""
    if match := re.search(r"Place: (.+)$", text):
        return match[1][:120]
    for pattern in _PLACES:
        for match in re.finditer(pattern, text):
            location = re.sub(r"(?i)^(?:on|at|in(?! front))\s+(?:the\s+)?", "", match[0]).strip(" .,")
            if location.lower().split(" ")[0] not in _NOT_PLACES:
                return location[:120]
    return ""


def date_of(text: str) -> str | None:
    """Return a date in the text in ISO form; None without one."""
    match = re.search(r"\b(20\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d)\b", text)
    return match[0] if match else None


def name_of(text: str) -> str | None:
    """Return the name that the writer gives; None without one."""
    match = re.search(
        r"\b(?:[Mm]y name is|[Ii]ch heiße|[Jj]e m'appelle|[Mm]e llamo)\s+([A-ZÀ-Ý][\w'-]+(?:\s+[A-ZÀ-Ý][\w'-]+)?)", text
    )
    return match[1] if match else None


def _wish(text: str, kind: str) -> Wish:
    if not re.search(r"\w", text):
        return "unreadable" if text else "blank"
    for wish, pattern in _WISHES:
        if _has(text, pattern):
            return wish
    if _has(text, _CANCEL):
        return "cancel"
    if len(text.split()) <= 5 and _has(text, _THANKS) and not kind and not _has(text, _COMPLAINT):
        return "thanks"
    return _matter(text, kind)


def _matter(text: str, kind: str) -> Wish:
    """Distinguish incidents from opinions: a known kind of incident wins, unless the message only judges it."""
    is_opinion = _has(text, _FEEDBACK) or _has(text, _COMPLAINT) or _has(text, _PRAISE)
    if re.fullmatch(_BARE, text, re.IGNORECASE):
        return "invite"
    if kind and kind != "incident" and not (is_opinion and not place_of(text)):
        return "incident"
    if is_opinion:
        return "feedback"
    if kind:
        return "incident"
    if re.search(_INJECTION, text, re.IGNORECASE):
        return "injection"
    if len(text.split()) <= 6 and _has(text, _GREETING):
        return "greeting"
    if _is_noise(text):
        return "unreadable"
    if re.search(r"(?i)\b(help me|what can you do|who are you|what is this)\b", text):
        return "greeting"
    if "?" in text or re.match(
        r"(?i)(who|what|when|where|why|how|can|could|do|does|is|are|which|wie|was|wo|wer|comment|où|qué|cómo)\b", text
    ):
        return "question"
    return "talk"


def _severity(text: str, kind: str) -> int:
    if _has(text, "urgent|injured|emergency|danger|life|explosion|bleeding|verletzt|blessé|herido"):
        return 5
    if _has(text, "small|minor|little|tiny|klein|petit|pequeñ"):
        return 1
    return _SEVERE.get(kind, 2)


def _sentiment(text: str) -> str:
    negative, positive = _has(text, _COMPLAINT), _has(text, _PRAISE)
    if negative:
        return "negative"
    return "positive" if positive else "neutral"


def _language(text: str) -> str:
    tokens = re.findall(r"\w+", text.lower())
    best, count = "en", 0 if len(tokens) <= 4 else 1
    for language, common_words in _LANGUAGES.items():
        hits = sum(word in common_words.split("|") for word in tokens)
        if hits > count:
            best, count = language, hits
    is_foreign = sum(ord(letter) > 0x24F for letter in text) > len(text) / 3
    return "other" if is_foreign else best


def _is_noise(text: str) -> bool:
    """Return whether it is keyboard noise: hardly a letter, or no pronounceable word."""
    if any(ord(letter) > 0x24F and letter.isalpha() for letter in text):
        return False
    tokens = re.findall(r"[^\W\d_]{2,}", text)
    spoken = [word for word in tokens if re.search(r"(?i)[aeiouyäöüàâéèêëîïôûùáíóúñ]", word) and not _is_jammed(word)]
    return not spoken or sum(map(len, spoken)) < len(text.replace(" ", "")) * 0.3


def _is_jammed(word: str) -> bool:
    return bool(re.search(r"(?i)[bcdfghjklmnpqrstvwxz]{6}|(.)\1{3}|asdf|qwe|hjkl|zxcv|dkjh", word))


def _has(text: str, pattern: str) -> bool:
    return bool(re.search(rf"\b(?:{pattern})", text, re.IGNORECASE))
