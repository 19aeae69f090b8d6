"use strict";

// A file of its own, since the page allows no script inside itself.
const csrf = () => (document.cookie.match(/(?:^|; )csrftoken=([^;]+)/) || ["", ""])[1];

SwaggerUIBundle({
  url: document.getElementById("swagger-ui").dataset.schema,
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  requestInterceptor: (request) => {
    if (request.method === "POST") {
      request.headers["X-CSRFToken"] = csrf();
    }
    return request;
  },
});
