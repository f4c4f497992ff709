// An echo server on a Selector, and clients on a Selector and on blocking sockets.
// Usage: Nio serve PORT | Nio ask PORT MESSAGES

import java.io.DataInputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;

public class Nio {
    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[1]);
        if (args[0].equals("serve")) {
            serve(port);
            return;
        }
        int messages = Integer.parseInt(args[2]);
        long[] checked = new long[4];
        Throwable[] wrong = new Throwable[4];
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            int me = i;
            threads[i] = new Thread(() -> {
                try {
                    checked[me] = me % 2 == 0 ? blocking(port, messages, me) : selecting(port, messages);
                } catch (Throwable error) {
                    wrong[me] = error;
                }
            });
            threads[i].start();
        }
        for (int i = 0; i < threads.length; i++) {
            threads[i].join();
            if (wrong[i] != null) {
                wrong[i].printStackTrace();
                System.exit(1);
            }
        }
        System.out.println("checked " + Arrays.stream(checked).sum());
    }

    static void serve(int port) throws Exception {
        Selector selector = Selector.open();
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress("127.0.0.1", port));
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        while (true) {
            selector.select();
            for (SelectionKey key : selector.selectedKeys()) {
                if (key.isAcceptable()) {
                    SocketChannel accepted = listener.accept();
                    accepted.configureBlocking(false);
                    accepted.register(selector, SelectionKey.OP_READ, ByteBuffer.allocate(1 << 16));
                } else {
                    echo(key);
                }
            }
            selector.selectedKeys().clear();
        }
    }

    /** Reads while there is room, writes what there is, and asks for the event that is missing. */
    static void echo(SelectionKey key) throws Exception {
        SocketChannel channel = (SocketChannel) key.channel();
        ByteBuffer buffer = (ByteBuffer) key.attachment();
        int got = channel.read(buffer);
        buffer.flip();
        channel.write(buffer);
        boolean left = buffer.hasRemaining();
        buffer.compact();
        if (got < 0 && !left) {
            channel.close();
            return;
        }
        int room = buffer.hasRemaining() && got >= 0 ? SelectionKey.OP_READ : 0;
        key.interestOps(room | (left ? SelectionKey.OP_WRITE : 0));
    }

    static byte[] message(int at, int stream) {
        byte[] data = new byte[1 + at * 7919 % (at % 50 == 0 ? 300_000 : 700)];
        Arrays.fill(data, (byte) (at + stream));
        return data;
    }

    static long blocking(int port, int messages, int stream) throws Exception {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(60_000);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            OutputStream out = socket.getOutputStream();
            for (int at = 0; at < messages; at++) {
                byte[] data = message(at, stream);
                byte[] back = new byte[data.length];
                // Longer than buffers on the way may be: written while it is read.
                Thread writer = data.length > 10_000 ? new Thread(() -> write(out, data)) : null;
                if (writer == null) {
                    out.write(data);
                } else {
                    writer.start();
                }
                in.readFully(back);
                if (writer != null) {
                    writer.join();
                }
                check(data, back, at);
            }
            socket.shutdownOutput();
            if (in.read() != -1) {
                throw new IllegalStateException("bytes after the end");
            }
        }
        return messages;
    }

    static void write(OutputStream out, byte[] data) {
        try {
            out.write(data);
        } catch (java.io.IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Sends the next message while the last is still coming back. */
    static long selecting(int port, int messages) throws Exception {
        Selector selector = Selector.open();
        SocketChannel channel = SocketChannel.open(new InetSocketAddress("127.0.0.1", port));
        channel.configureBlocking(false);
        SelectionKey key = channel.register(selector, SelectionKey.OP_READ | SelectionKey.OP_WRITE);
        ByteBuffer out = ByteBuffer.wrap(message(0, 9));
        ByteBuffer in = ByteBuffer.allocate(message(0, 9).length);
        int sent = 0;
        int got = 0;
        while (got < messages) {
            if (selector.select(60_000) == 0) {
                throw new IllegalStateException("nothing happens after " + got + " messages");
            }
            selector.selectedKeys().clear();
            while (sent < messages && channel.write(out) >= 0 && !out.hasRemaining()) {
                sent++;
                out = ByteBuffer.wrap(sent < messages ? message(sent, 9) : new byte[0]);
            }
            while (got < messages && channel.read(in) > 0) {
                if (!in.hasRemaining()) {
                    check(message(got, 9), in.array(), got);
                    got++;
                    in = ByteBuffer.allocate(message(got, 9).length);
                }
            }
            key.interestOps(SelectionKey.OP_READ | (sent < messages ? SelectionKey.OP_WRITE : 0));
        }
        channel.close();
        return messages;
    }

    static void check(byte[] data, byte[] back, int at) {
        if (!Arrays.equals(data, back)) {
            throw new IllegalStateException("message " + at + " came back wrong");
        }
    }
}
