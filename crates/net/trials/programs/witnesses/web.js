// An HTTP server with keep-alive and its client, and an echo over net sockets.
// Usage: web.js serve PORT NET_PORT | web.js ask PORT NET_PORT REQUESTS
'use strict';
const http = require('http');
const net = require('net');
const crypto = require('crypto');

const sha = (data) => crypto.createHash('sha256').update(data).digest('hex');
const fail = (error) => { console.error(error); process.exit(1); };

function serve(port, netPort) {
  http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts);
      response.setHeader('x-sha', sha(body));
      response.end(body);
    });
  }).listen(port, '127.0.0.1');
  // allowHalfOpen: the answer comes after the client has finished.
  net.createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)).listen(netPort, '127.0.0.1');
}

function post(agent, port, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ agent, port, host: '127.0.0.1', method: 'POST' }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const same = Buffer.concat(parts).equals(body) && response.headers['x-sha'] === sha(body);
        if (same) resolve(); else reject(new Error(`a wrong body of ${body.length} bytes`));
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

async function requests(port, count) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let at = 0; at < count; at++) {
    await post(agent, port, Buffer.alloc([0, 10, 3000, 200000][at % 4], at % 256));
  }
  agent.destroy();
  return count;
}

// Half close: everything is written and ended before the last of it has come back.
function echo(port, size) {
  return new Promise((resolve, reject) => {
    const data = crypto.randomBytes(size);
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const parts = [];
    socket.on('data', (part) => parts.push(part));
    socket.on('error', reject);
    socket.on('end', () => {
      if (Buffer.concat(parts).equals(data)) resolve(1); else reject(new Error('wrong echo'));
    });
    socket.end(data);
  });
}

async function ask(port, netPort, count) {
  const done = await Promise.all([
    requests(port, count), requests(port, count), requests(port, count),
    echo(netPort, 5000000), echo(netPort, 20000000), echo(netPort, 10),
  ]);
  console.log('checked', done.reduce((sum, one) => sum + one));
}

const [role, port, netPort, count] = process.argv.slice(2);
if (role === 'serve') serve(Number(port), Number(netPort));
else ask(Number(port), Number(netPort), Number(count)).catch(fail);
