-- Runs one of sysbench's own tests until a flag is set, and logs the end and the duration of each
-- transaction. sysbench itself counts in whole seconds, from its first connection.
-- sysbench calls thread_run when every thread is connected.

local ffi = require("ffi")

-- The test's name is in the environment, because options are parsed after the test defined its own.
require(assert(os.getenv("SYSBENCH_TEST"), "SYSBENCH_TEST names no test"))

sysbench.cmdline.options.load_stop = {"File whose first byte ends the load", ""}
sysbench.cmdline.options.load_events = {"Files for events, one for each thread", ""}
sysbench.cmdline.options.load_reconnect = {"Make a connection for each transaction", false}

ffi.cdef[[
typedef struct { long seconds; long nanoseconds; } saiga_time;
int clock_gettime(int clock, saiga_time *time);
int open(const char *path, int flags, ...);
void *mmap(void *where, size_t length, int protection, int flags, int fd, long offset);
]]

local time = ffi.new("saiga_time")

local function now_us()
   ffi.C.clock_gettime(0, time)
   return tonumber(time.seconds) * 1e6 + tonumber(time.nanoseconds) / 1e3
end

-- Mapped, so that reading it costs nothing; zero until the load must stop.
local function stop_flag()
   local fd = ffi.C.open(sysbench.opt.load_stop, 0)
   assert(fd >= 0, "cannot open " .. sysbench.opt.load_stop)
   local page = ffi.C.mmap(nil, 4096, 1, 1, fd, 0)
   assert(ffi.cast("long", page) ~= -1, "cannot map " .. sysbench.opt.load_stop)
   return ffi.cast("volatile char *", page)
end

-- Deadlocks and lock wait time-outs are results too; sysbench itself would retry.
local function transaction()
   local done, problem = pcall(event)
   if done then
      return true
   end
   if type(problem) == "table" and problem.errcode == sysbench.error.RESTART_EVENT then
      return false
   end
   error(problem)
end

local function note(name, count, line)
   local file = assert(io.open(sysbench.opt.load_events .. "." .. name, "w"))
   for i = 1, count do
      file:write(line(i))
   end
   file:close()
end

function thread_run(thread)
   local stop = stop_flag()
   if thread == 0 then
      note("begun", 1, function() return "\n" end)
   end
   local reconnect = sysbench.opt.load_reconnect
   local ended, took, count = {}, {}, 0
   local before = now_us()
   while stop[0] == 0 do
      local committed = transaction()
      if reconnect then
         thread_done()
         thread_init()
      end
      local after = now_us()
      if committed then
         count = count + 1
         ended[count], took[count] = after, after - before
      end
      before = after
   end
   note(thread, count, function(i) return string.format("%.0f %.0f\n", ended[i], took[i]) end)
end
