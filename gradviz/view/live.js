// Looks once a second whether there is more in a file than this page shows. It shows
// more by itself, until something is selected in it: the address says so then.
const bar = document.getElementById("live");
const is_chosen = () => /[#&](node|moment|from_ns)=/.test(location.hash);

async function look() {
  let state;
  try {
    const answer = await fetch(bar.dataset.state);
    state = answer.ok ? await answer.json() : undefined;
  } catch {
    bar.textContent = "the server has ended";
    return;
  }
  if (state && state.edition !== bar.dataset.edition) {
    if (!is_chosen()) return location.reload();
    bar.textContent = "more has been recorded: reload to see it";
  }
  setTimeout(look, 1000);
}

setTimeout(look, 1000);
