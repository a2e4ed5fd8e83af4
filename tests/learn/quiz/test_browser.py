"""Questions and figures of the lessons' pages in a real browser."""

import json

import pytest

from browser import CHROMIUM, WHY, Browser
from regard.learn.quiz import bank
from regard.learn.quiz.progress import Progress
from regard.learn.site import pages

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY)


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("lessons")
    for name, html in pages():
        (made / name).write_text(html, encoding="utf-8")
    return made


@pytest.fixture
def masks(browser, folder):
    path = folder / "05-masks.html"
    browser.open(path)
    browser.run("localStorage.clear()")
    browser.open(path)
    browser.wait("document.querySelectorAll('.quiz[data-ready]').length === 3")
    yield browser
    assert browser.requests == [path.as_uri()]
    assert browser.errors == []


@pytest.mark.parametrize("width", [360, 1440])
def test_every_page_starts_and_asks_nothing_of_the_network(browser, folder, width):
    for path in sorted(folder.glob("*.html")):
        browser.open(path, width=width)
        browser.wait(
            "document.querySelectorAll('figure[data-figure]:not([data-ready])').length === 0"
        )
        assert browser.requests == [path.as_uri()]
        assert browser.errors == [], path.name
        assert browser.run("document.documentElement.scrollWidth") <= width, path.name
        named = browser.run(
            "[...document.querySelectorAll('figure.interactive .figure')]"
            ".every((figure) => figure.querySelector('.told'))"
        )
        assert named is True


def answer(page, section, question, option):
    """Choose an option and press the button, as a person does; return what is told."""
    page.run(
        f"(() => {{ const q = document.querySelectorAll('.quiz')[{section}]"
        f".querySelectorAll('.question')[{question}];"
        f"q.querySelectorAll('input')[{option}].id = 'wanted';"
        "q.querySelector('button').id = 'press'; })()"
    )
    page.click("#wanted")
    page.click("#press")
    told = page.run("document.querySelector('#press').closest('fieldset').querySelector("
                    "'.verdict').textContent")  # fmt: skip
    page.run("['wanted', 'press'].forEach((id) => { document.getElementById(id).id = ''; })")
    return told


def test_an_answer_is_judged_explained_and_kept(masks, folder):
    (name,) = [each for each in bank.names("masks", "before") if not bank.endless(each)]
    asked = bank.question(name, 0)
    told = answer(masks, 0, 0, asked.right)
    assert told == f"Right. {asked.because}".replace("`", "")
    wrong = next(at for at in range(len(asked.options)) if at != asked.right)
    masks.run(
        "[...document.querySelectorAll('.question')[0].querySelectorAll('button')]"
        ".find((b) => b.textContent === 'Ask again').click()"
    )
    assert answer(masks, 0, 0, wrong).startswith("No. ")
    kept = json.loads(masks.run("localStorage.getItem('regard quiz')"))
    assert kept["answers"] == {name: {"right": 1, "wrong": 1, "last": "wrong"}}
    masks.open(folder / "05-masks.html")
    masks.wait("document.querySelector('.standing')?.textContent")
    total = len(bank.names("masks"))
    assert masks.run("document.querySelector('.standing').textContent").startswith(
        f"0 of this page's {total} questions"
    )


def test_a_question_is_answered_by_keyboard_and_another_follows(masks):
    place = bank.names("masks", "check").index("mask-causal")
    question = f"document.querySelectorAll('.quiz')[1].querySelectorAll('.question')[{place}]"
    before = masks.run(f"{question}.querySelector('legend').textContent")
    masks.run(f"{question}.querySelector('input').focus()")
    masks.press(" ")
    masks.press("Tab")
    masks.press("Enter")
    assert masks.run(f"{question}.querySelector('.verdict').textContent")
    masks.press("Tab")
    masks.press("Enter")
    assert masks.run(f"{question}.querySelector('legend').textContent") != before


def test_without_a_choice_nothing_is_judged(masks):
    masks.run("document.querySelector('.question button').id = 'press'")
    masks.click("#press")
    told = masks.run("document.querySelector('.question .verdict').textContent")
    assert told == "Choose an answer first."
    assert masks.run("localStorage.getItem('regard quiz')") is None


def give(page, path):
    node = page.send("DOM.getDocument")["root"]["nodeId"]
    found = page.send(
        "DOM.querySelector", nodeId=node, selector=".quiz details input[type=file]"
    )
    page.send("DOM.setFileInputFiles", files=[str(path)], nodeId=found["nodeId"])


def test_a_file_of_the_terminal_is_read_and_another_is_refused(masks, tmp_path):
    mine = Progress()
    mine.note("masks-true", True)
    mine.save(tmp_path / "mine.json")
    (tmp_path / "other.json").write_text(
        '{"format": "regard quiz", "version": 1, "answers": 3}'
    )
    told = "[...document.querySelectorAll('.quiz details p[role=status]')].at(-1).textContent"
    give(masks, tmp_path / "mine.json")
    masks.wait(f"{told} === 'mine.json was read.'")
    kept = masks.run("localStorage.getItem('regard quiz')")
    assert json.loads(kept)["answers"] == mine.answers
    give(masks, tmp_path / "other.json")
    masks.wait(f"{told}.startsWith('other.json was not read: ')")
    assert masks.run("localStorage.getItem('regard quiz')") == kept


def test_what_the_page_saves_the_terminal_reads(masks, tmp_path):
    masks.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    mine = Progress()
    mine.note("masks-true", False)
    mine.save(tmp_path / "mine.json")
    give(masks, tmp_path / "mine.json")
    masks.wait("localStorage.getItem('regard quiz')")
    masks.run("document.querySelectorAll('.quiz details:last-of-type').forEach("
              "(d) => { d.open = true; })")  # fmt: skip
    masks.run("[...document.querySelectorAll('.quiz details button')].find("
              "(b) => b.textContent === 'Save to a file').id = 'save'")  # fmt: skip
    masks.click("#save")
    saved = tmp_path / "regard-quiz.json"
    import time

    end = time.monotonic() + 60
    while not saved.exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert Progress.load(saved) == mine
    masks.requests[:] = [url for url in masks.requests if not url.startswith("blob:")]


def test_without_scripts_the_questions_can_be_read(browser, folder, tmp_path):
    text = (folder / "05-masks.html").read_text(encoding="utf-8")
    path = tmp_path / "plain.html"
    path.write_text(text.replace("script-src 'sha256-", "script-src 'sha256-0"), "utf-8")
    browser.open(path)
    asked = browser.run("document.querySelectorAll('.quiz .questions > ol > li').length")
    assert asked == len(bank.names("masks"))
    browser.errors.clear()
