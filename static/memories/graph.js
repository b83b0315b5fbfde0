// Draws a person's graph, and moves it through time. Without this the page has a day, a list and links. Texts of people
// are painted on a canvas or set as text; nothing makes HTML of them.
(() => {
  const card = document.getElementById("graph");
  if (!card || typeof cytoscape !== "function") {
    return;
  }
  const form = card.querySelector(".graph-time");
  const dayField = document.getElementById("graph-day");
  const slider = document.getElementById("graph-slider");
  const stage = card.querySelector(".graph-stage");
  const canvas = document.getElementById("graph-drawing");
  const status = card.querySelector(".graph-status");
  const list = document.getElementById("holds");
  const DAY = 86_400_000;
  const first = Date.parse(card.dataset.first);
  const written = new Intl.DateTimeFormat(document.documentElement.lang || undefined, { dateStyle: "medium", timeZone: "UTC" });
  let cy = null;
  let current = null;
  let isCut = false;

  // Days are numbers since the first one; ISO days compare as texts.
  const isoOf = (number) => new Date(first + number * DAY).toISOString().slice(0, 10);
  const numberOf = (iso) => Math.round((Date.parse(iso) - first) / DAY);
  const chosen = () => isoOf(Number(slider.value));
  const holds = (triple, day) => (!triple.from || triple.from <= day) && (!triple.until || triple.until > day);

  // Colours of the style sheet, in a form that a canvas of any library reads.
  const colours = () => {
    const probe = card.appendChild(document.createElement("span"));
    const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const read = (name) => {
      probe.style.color = `var(${name})`;
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = getComputedStyle(probe).color;
      pen.fillRect(0, 0, 1, 1);
      const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
      return `rgb(${red}, ${green}, ${blue})`;
    };
    const found = {};
    for (const name of ["ground", "line", "text", "strong", "faint", "accent", "cited-edge"]) {
      found[name] = read(`--hub-${name}`);
    }
    found.filled = read("--color-primary-600");
    probe.remove();
    return found;
  };

  const font = getComputedStyle(document.body).fontFamily;
  const SIZE = 12;
  const [SMALLEST, LARGEST] = [0.6, 1.25];
  const WIDEST = 150;
  const widthOf = (() => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `600 ${SIZE}px ${font}`;
    return (text) => Math.min(WIDEST, pen.measureText(text).width) + 20;
  })();

  const look = () => {
    const colour = colours();
    return [
      { selector: "node", style: {
        shape: "round-rectangle", width: "data(width)", height: 28, "background-color": colour.ground,
        "border-width": 1, "border-color": colour.faint, label: "data(name)", color: colour.strong,
        "font-family": font, "font-size": SIZE, "font-weight": 500, "text-valign": "center", "text-halign": "center",
        "text-wrap": "ellipsis", "text-max-width": WIDEST } },
      { selector: "node[?person]", style: {
        "background-color": colour.filled, "border-color": colour.filled, color: "#fff", "font-weight": 600 } },
      { selector: "edge", style: {
        width: 1.5, "curve-style": "bezier", "line-color": colour.faint, "target-arrow-color": colour.faint,
        "target-arrow-shape": "triangle", "arrow-scale": 0.9, label: "data(predicate)", color: colour.text,
        "font-family": font, "font-size": 11, "text-rotation": "autorotate", "text-wrap": "ellipsis",
        "text-max-width": 130, "text-background-color": colour.ground, "text-background-opacity": 0.85,
        "text-background-padding": 2, "text-background-shape": "round-rectangle", "min-zoomed-font-size": 7 } },
      { selector: "edge.ended", style: { "line-style": "dashed" } },
      { selector: "edge.waits", style: {
        "line-style": "dotted", width: 2, "line-color": colour["cited-edge"], "target-arrow-color": colour["cited-edge"] } },
      { selector: ".gone", style: { display: "none" } },
      { selector: ".dim", style: { opacity: 0.25 } },
      { selector: "edge.near", style: {
        "line-color": colour.accent, "target-arrow-color": colour.accent, color: colour.strong, "min-zoomed-font-size": 0, "z-index": 9 } },
      { selector: "node.current", style: { "border-width": 3, "border-color": colour.accent } },
      { selector: "node.current[?person]", style: { "border-color": colour.strong } },
      { selector: "core", style: { "active-bg-opacity": 0 } },
    ];
  };

  // Names are wide and the stage may be, too: as wide as the stage is against its height, so that both are filled.
  const spread = (nodes) => {
    const box = nodes.boundingBox({ includeLabels: false });
    const wanted = cy.width() / Math.max(1, cy.height());
    const factor = Math.min(3, Math.max(0.6, wanted / (box.w / Math.max(1, box.h))));
    nodes.forEach((node) => {
      node.position("x", node.position("x") * factor);
    });
  };

  // Where an entity is new it begins on a circle, always at the same place: the same graph looks the same each time.
  const arrange = () => {
    const known = cy.scratch("places") || {};
    const nodes = cy.nodes();
    const middle = nodes.filter("[?middle]");
    nodes.forEach((node, index) => {
      const angle = index * 2.4;
      const distance = 60 * Math.sqrt(index + 0.5);
      node.position(known[node.id()] || { x: distance * Math.cos(angle), y: distance * Math.sin(angle) });
    });
    if (middle.nonempty() && !known[middle.id()]) {
      middle.position({ x: 0, y: 0 });
    }
    cy.layout({
      name: "cose", animate: false, randomize: false, fit: false, idealEdgeLength: () => 115, edgeElasticity: () => 60,
      nodeRepulsion: () => 120_000, nodeOverlap: 40, gravity: 1.2, numIter: 1_200, componentSpacing: 60,
    }).run();
    spread(nodes);
    cy.scratch("places", Object.fromEntries(nodes.map((node) => [node.id(), { ...node.position() }])));
  };

  const show = (day) => {
    let count = 0;
    cy.batch(() => {
      cy.edges().forEach((edge) => {
        const data = edge.data();
        const is = holds(data, day);
        count += is;
        edge.toggleClass("gone", !is);
        edge.toggleClass("ended", Boolean(data.until) && data.until <= card.dataset.today);
        edge.toggleClass("waits", data.waits);
      });
      cy.nodes().forEach((node) => node.toggleClass("gone", node.connectedEdges().every((edge) => edge.hasClass("gone"))));
    });
    if (current?.hasClass("gone")) {
      mark(null);
    }
    card.querySelector(".graph-nothing").hidden = count > 0;
    const spoken = written.format(new Date(`${day}T00:00:00Z`));
    slider.setAttribute("aria-valuetext", spoken);
    dayField.value = day;
  };

  // What is around an entity, or a triple, under the pointer or chosen by the keyboard.
  const light = (element) => {
    cy.elements().removeClass("dim near");
    if (element) {
      const near = element.isNode() ? element.closedNeighborhood() : element.union(element.connectedNodes());
      cy.elements().not(near).addClass("dim");
      near.edges().addClass("near");
    }
  };

  const mark = (node) => {
    cy.nodes().removeClass("current");
    current = node;
    light(node);
    status.textContent = "";
    if (node) {
      node.addClass("current");
      const values = { name: node.data("name"), kind: node.data("type") || card.dataset.entity, count: node.connectedEdges(":visible").length };
      status.textContent = card.dataset.named.replace(/\{(\w+)\}/g, (_whole, name) => values[name]);
    }
  };

  const open = (element, event) => {
    const page = `${element.data("page")}?as_of=${chosen()}`;
    if (event?.ctrlKey || event?.metaKey || event?.shiftKey) {
      window.open(page, "_blank", "noopener");
    } else {
      window.location.assign(page);
    }
  };

  const elementsOf = (graph) => [
    ...graph.entities.map((one) => ({ group: "nodes", data: {
      id: one.id, name: one.name, type: one.type, person: one.is_person, page: one.page, width: widthOf(one.name),
      middle: card.dataset.focus ? one.id === card.dataset.focus : one.is_person } })),
    ...graph.triples.map((one) => ({ group: "edges", data: {
      id: one.id, source: one.subject, target: one.object, predicate: one.predicate, from: one.from, until: one.until,
      waits: one.waits, page: one.page } })),
  ];

  let asked = 0;
  const fetched = async (day) => {
    const query = new URLSearchParams({ as_of: day });
    if (card.dataset.focus) {
      query.set("focus", card.dataset.focus);
    }
    const answer = await fetch(`${card.dataset.from}?${query}`, { credentials: "same-origin", headers: { Accept: "application/json" } });
    if (answer.redirected || !answer.ok) {
      throw new Error(String(answer.status));
    }
    return answer.json();
  };

  const draw = async (day) => {
    const number = ++asked;
    const graph = await fetched(day);
    if (number !== asked) {
      return;
    }
    isCut = graph.is_cut;
    const isNew = !cy;
    stage.hidden = false;
    for (const part of card.querySelectorAll(".graph-slide, .graph-foot")) {
      part.hidden = false;
    }
    card.querySelector(".graph-go").hidden = true;
    if (isNew) {
      cy = cytoscape({ container: canvas, style: look(), minZoom: 0.15, maxZoom: 3, boxSelectionEnabled: false, autounselectify: true });
      listen();
    } else {
      mark(null);
    }
    cy.elements().remove();
    cy.add(elementsOf(graph));
    arrange();
    // All of it, before some of it is hidden: what held on another day lies within the stage, too.
    if (isNew) {
      fit();
    }
    show(day);
  };

  const fit = () => {
    const seen = cy.elements(":visible");
    cy.fit(seen.nonempty() ? seen : undefined, 24);
    // Few entities would be drawn as large as the stage, and many so small that nobody could read their names.
    const readable = Math.min(LARGEST, Math.max(SMALLEST, cy.zoom()));
    if (readable !== cy.zoom()) {
      const isLarge = readable < cy.zoom();
      cy.zoom(readable);
      // The entity in focus comes first, else the most connected one.
      cy.center(isLarge ? seen : seen.nodes()[0]);
    }
  };

  const zoomBy = (factor) => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });

  // The nearest entity in the direction of an arrow key.
  const neighbour = (dx, dy) => {
    const seen = cy.nodes(":visible");
    if (!current) {
      const middle = seen.filter("[?middle]");
      return middle.nonempty() ? middle[0] : seen[0];
    }
    const from = current.position();
    let best = null;
    let least = Infinity;
    seen.forEach((node) => {
      const x = node.position().x - from.x;
      const y = node.position().y - from.y;
      const along = x * dx + y * dy;
      if (along > 1) {
        const distance = along + 2 * Math.abs(x * dy - y * dx);
        if (distance < least) {
          [best, least] = [node, distance];
        }
      }
    });
    return best;
  };

  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const listen = () => {
    cy.on("tap", "node, edge", (event) => open(event.target, event.originalEvent));
    cy.on("mouseover", "node, edge", (event) => {
      canvas.style.cursor = "pointer";
      light(event.target);
    });
    cy.on("mouseout", "node, edge", () => {
      canvas.style.cursor = "";
      light(current);
    });
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) {
        return;
      }
      if (ARROWS[event.key]) {
        const next = neighbour(...ARROWS[event.key]);
        if (next) {
          mark(next);
          const box = next.renderedBoundingBox();
          if (box.x1 < 0 || box.y1 < 0 || box.x2 > cy.width() || box.y2 > cy.height()) {
            cy.center(next);
          }
        }
      } else if (event.key === "Enter" && current) {
        open(current, event);
      } else if (event.key === "+" || event.key === "=") {
        zoomBy(1.25);
      } else if (event.key === "-") {
        zoomBy(0.8);
      } else if (event.key === "0") {
        fit();
      } else if (event.key === "Escape" && current) {
        mark(null);
      } else {
        return;
      }
      event.preventDefault();
    });
    canvas.addEventListener("blur", () => mark(null));
    // The wheel scrolls the page unless Ctrl is held.
    stage.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) {
        event.stopPropagation();
      }
    }, { capture: true, passive: true });
    card.querySelector(".graph-zoom").addEventListener("click", (event) => {
      const kind = event.target.closest("button")?.dataset.zoom;
      if (kind === "fit") {
        cy.fit(cy.elements(":visible"), 24);
      } else if (kind) {
        zoomBy(kind === "in" ? 1.25 : 0.8);
      }
    });
    new MutationObserver(() => cy.style(look())).observe(document.documentElement, { attributeFilter: ["class"] });
  };

  // The days on which something of what is drawn begins or ends.
  const changes = () => {
    const days = new Set();
    cy.edges().forEach((edge) => {
      for (const day of [edge.data("from"), edge.data("until")]) {
        if (day) {
          days.add(numberOf(day));
        }
      }
    });
    return [...days].sort((one, other) => one - other);
  };

  let listed = 0;
  // The list, the address and the links follow once the slider rests; the drawing, if nothing of it is in sight.
  const settle = async () => {
    const day = chosen();
    const { x1, y1, x2, y2 } = cy.extent();
    const seen = cy.nodes(":visible");
    const isInSight = (node) => {
      const { x, y } = node.position();
      return x > x1 && x < x2 && y > y1 && y < y2;
    };
    if (seen.nonempty() && !seen.some(isInSight)) {
      fit();
    }
    const number = ++listed;
    const address = new URL(window.location.href);
    address.searchParams.set("as_of", day);
    history.replaceState(history.state, "", address);
    for (const link of document.querySelectorAll("a[data-keeps-day]")) {
      const to = new URL(link.href);
      to.searchParams.set("as_of", day);
      link.href = to.href;
    }
    try {
      list.setAttribute("aria-busy", "true");
      const [answer] = await Promise.all([
        fetch(address, { headers: { "X-Fragment": "holds" }, credentials: "same-origin" }),
        isCut ? draw(day) : null,
      ]);
      if (answer.redirected || !answer.ok) {
        throw new Error(String(answer.status));
      }
      const text = await answer.text();
      if (number === listed) {
        list.innerHTML = text;
      }
    } catch {
      form.submit();
    } finally {
      if (number === listed) {
        list.removeAttribute("aria-busy");
      }
    }
  };

  const goTo = (number) => {
    slider.value = String(number);
    show(chosen());
    settle();
  };

  slider.min = "0";
  slider.max = String(numberOf(card.dataset.last));
  slider.value = String(numberOf(dayField.value));
  slider.addEventListener("input", () => show(chosen()));
  slider.addEventListener("change", settle);
  form.addEventListener("submit", (event) => {
    if (cy) {
      event.preventDefault();
    }
  });
  dayField.addEventListener("change", () => {
    const number = numberOf(dayField.value);
    // Beyond the slider the page is loaded anew, with that day.
    if (!cy || Number.isNaN(number) || number < 0 || number > Number(slider.max)) {
      if (dayField.value) {
        form.submit();
      }
      return;
    }
    goTo(number);
  });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-step], button[data-today]");
    if (!button || !cy) {
      return;
    }
    const now = Number(slider.value);
    if (button.hasAttribute("data-today")) {
      goTo(numberOf(card.dataset.today));
    } else if (button.dataset.step === "1") {
      goTo(changes().find((day) => day > now) ?? Number(slider.max));
    } else {
      goTo(changes().reverse().find((day) => day < now) ?? 0);
    }
  });

  draw(dayField.value).catch(() => {
    const note = card.appendChild(document.createElement("p"));
    note.className = "hub-failure";
    note.textContent = card.dataset.failed;
  });
})();
