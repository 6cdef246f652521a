// Looks once a second whether there is more in a file than this page shows, and has the
// page show that instead, as long as the reader wants to follow the recording.
const live = () => document.getElementById("live");

// Whoever replays a pass, or is about to choose or to write something, keeps what is shown.
function isBusy() {
  const { activeElement } = document;
  return (
    /[#&]moment=/.test(location.hash) ||
    document.querySelector("dialog[open]") !== null ||
    activeElement?.closest("#page :is(input, select)") != null
  );
}

// All of a page but its program: the bar above it, and the data.
async function swap() {
  const shown = document.getElementById("data");
  if (!shown) return location.reload(); // it waits for the first pass
  const answer = await fetch(location.pathname + location.search);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [bar, data] = ["bar", "data"].map((id) => next.getElementById(id));
  if (!bar || !data) return location.reload();
  document.getElementById("bar").replaceWith(document.adoptNode(bar));
  if (data.textContent === shown.textContent) return;
  shown.textContent = data.textContent;
  const event = new CustomEvent("gradviz-data", { detail: data.textContent });
  document.dispatchEvent(event);
}

async function look() {
  const bar = live();
  const begin = performance.now();
  try {
    const answer = await fetch(bar.dataset.state);
    const state = answer.ok ? await answer.json() : undefined;
    if (!state) bar.firstChild.data = "the trace is not there any more";
    else if (state.edition !== bar.dataset.edition) {
      const follows = document.getElementById("follow")?.checked ?? true;
      if (follows && !isBusy()) await swap();
      else bar.firstChild.data = "more has been recorded ";
    }
  } catch (error) {
    const hasEnded = error instanceof TypeError;
    bar.firstChild.data = hasEnded ? "the server has ended " : `${error.message} `;
    if (hasEnded) return;
  }
  // What takes a server long is not asked for all the time.
  const took = performance.now() - begin;
  if (live()) setTimeout(look, Math.max(1000, 2 * took));
}

setTimeout(look, 1000);
