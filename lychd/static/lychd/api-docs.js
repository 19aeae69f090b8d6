"use strict";

// A file of its own, since the page allows no script inside itself.
const csrf = () => (document.cookie.match(/(?:^|; )csrftoken=([^;]+)/) || ["", ""])[1];

SwaggerUIBundle({
  url: document.getElementById("swagger-ui").dataset.schema,
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  // A link inside the button that opens an operation would be a thing to press inside another (WCAG 4.1.2).
  deepLinking: false,
  requestInterceptor: (request) => {
    if (request.method === "POST") {
      request.headers["X-CSRFToken"] = csrf();
    }
    return request;
  },
});
