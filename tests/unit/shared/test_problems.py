"""Sentences about refused values: what is wrong, and what to write instead."""

from typing import Self

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from shared.config.problems import first_problem, located_problem


class Engine(BaseModel):
    model_config = ConfigDict(extra="forbid")
    power: int = 1


class Car(BaseModel):
    model_config = ConfigDict(extra="forbid")
    engine: Engine | None = None
    spares: tuple[Engine, ...] = ()
    by_name: dict[str, Engine] = {}


class Trip(BaseModel):
    seats: int
    guests: int

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.guests > self.seats:
            raise ValueError("guests: more than seats")
        return self


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"engin": 1}, "engin: no such field; did you mean engine?"),
        ({"roof": 1}, "roof: no such field; choose from by_name, engine, spares"),
        ({"engine": {"powr": 1}}, "engine.powr: no such field; did you mean power?"),
        ({"spares": [{}, {"powr": 1}]}, "spares.1.powr: no such field; did you mean power?"),
        ({"by_name": {"a": {"x": 1}}}, "by_name.a.x: no such field; choose from power"),
        ({"engine": 5}, "engine: has fields of its own: engine.power"),
        ({"engine": {"power": "x"}}, "engine.power: Input should be a valid integer, unable to parse"),
    ],
)
def test_a_mistake_is_answered_with_the_names_that_exist(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Car.model_validate(given)
    assert first_problem(refused.value, Car).startswith(sentence)


def test_without_the_model_the_message_still_names_the_field() -> None:
    with pytest.raises(ValidationError) as refused:
        Car.model_validate({"engine": {"power": "x"}})
    assert first_problem(refused.value).startswith("engine.power: Input should be a valid integer")


def test_without_the_model_a_misspelt_field_gets_no_empty_list() -> None:
    with pytest.raises(ValidationError) as refused:
        Car.model_validate({"engin": 1})
    assert first_problem(refused.value) == "engin: no such field"


def test_a_problem_of_several_fields_names_no_single_one() -> None:
    with pytest.raises(ValidationError) as refused:
        Trip(seats=1, guests=2)
    assert first_problem(refused.value, Trip) == "guests: more than seats"
    assert located_problem(refused.value, Trip) == ("", "guests: more than seats")
