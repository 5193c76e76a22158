"""A sample cluster: says where it listens, and answers nothing of use."""

import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), SimpleHTTPRequestHandler)
print(f"listening on http://127.0.0.1:{server.server_port}")
server.serve_forever()
