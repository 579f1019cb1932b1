
addEventListener('click', event => {
  const button = event.target.closest('th button');
  if (!button) return;
  const head = button.closest('th'), heads = [...head.parentNode.children], column = heads.indexOf(head);
  const text = head.classList.contains('text');
  const up = head.getAttribute('aria-sort') === 'descending' || (text && !head.hasAttribute('aria-sort'));
  for (const other of heads) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
  const body = button.closest('table').tBodies[0];
  const value = row => text ? row.cells[column].textContent : row.cells[column].dataset.n;
  const compare = (a, b) => {
    const x = value(a), y = value(b);
    // What is not known comes last, whichever way.
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    const order = text ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
    return up ? order : -order;
  };
  body.append(...[...body.rows].sort(compare));
});
