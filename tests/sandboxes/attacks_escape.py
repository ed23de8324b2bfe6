"""Programs that reach for what is outside their job: the supervisor, other jobs, the kernel, the network."""

from __future__ import annotations

from tests.sandboxes.attacks import DOORS, Attack, never, says

ESCAPES = (
    Attack(
        name="a daemon that outlives its job",
        code="import os,time,signal\nif os.fork()==0:\n  os.setsid()\n  if os.fork()==0:\n    for s in range(1,65):\n"
        "      try: signal.signal(s, signal.SIG_IGN)\n      except (OSError,ValueError): pass\n    os.closerange(0,100)\n"
        "    while True: time.sleep(.01); open('/tmp/alive','a').write('x')\n  os._exit(0)\ntime.sleep(.1); print('left')",
        contained=says("left"),
    ),
    Attack(
        name="signals to everyone",
        code="import os\nfor t in (1,os.getppid(),-os.getppid()):\n  for s in (9,19,15,2,1,10,12,17):\n"
        "    try: os.kill(t,s); print('SENT',t,s)\n    except OSError: pass\n"
        "try: os.kill(-1,9)\nexcept OSError: pass\nprint('survived')",
        contained=says("survived"),
    ),
    Attack(
        name="a look into the supervisor and the fork server",
        code="import os\nfor p in ('1',str(os.getppid())):\n  for f in ('environ','mem','maps','fd','fd/0','fd/1','root','cwd','exe','stack','auxv'):\n"
        "    q=f'/proc/{p}/{f}'\n    try:\n      os.listdir(q) if f in('fd','root','cwd') else open(q,'rb').read(10); print('OPEN',q)\n"
        "    except OSError: pass\nprint('done')",
        contained=says("done"),
    ),
    Attack(
        name="the previous job's data in memory",
        before="x='CANARY' + '7731'\nprint(x*10)",
        code="import ctypes\nneedle=bytes([67,65,78,65,82,89,55,55,51,49])[::-1]\nhits=0\nfor l in open('/proc/self/maps'):\n"
        "  a,p=l.split()[:2]\n  if 'r' not in p or 'v' in l.split()[-1][:2]: continue\n  s,e=(int(x,16) for x in a.split('-'))\n"
        "  b=ctypes.string_at(s,min(e-s,32<<20))\n  hits+=b.count(bytes(reversed(needle)))\nprint(hits<4)",
        contained=never("False"),
        options={"memory_mb": 1024},
    ),
    Attack(
        name="hidden files",
        code="import os\nfor d,ds,fs in os.walk('/'):\n  if d.startswith(('/proc','/sys','/usr','/lib')): ds[:]=[]; continue\n"
        "  for f in fs:\n    if 'test' in f.lower() or 'runner' in f or 'docker.sock' in f: print('FOUND',d,f)\nprint('searched')",
        contained=says("searched"),
    ),
    Attack(
        name="frames of its own on every descriptor",
        code="import os,json,struct\nh=json.dumps({'id':1,'status':'ended','cpu_s':0,'wall_s':0,'clean':True,'oom':0,'children':{'S':{'exit':0,'signal':None,'lost':0}},'blobs':[0]}).encode()\n"
        "fr=struct.pack('>II',len(h),len(h))+h\nfor fd in range(3,1024):\n  try: os.write(fd,fr)\n  except OSError: pass\n"
        "for q in ('/proc/1/fd/1','/dev/console','/proc/1/fd/0','/dev/tty'):\n  try: open(q,'wb').write(fr)\n  except OSError: pass\nos._exit(7)",
        contained=lambda r: r.exit_code == 7,
    ),
    Attack(
        name="ptrace and reading memory across processes",
        code=DOORS
        + "for n,a in (('attach',(16,os.getppid(),0,0)),('init',(16,1,0,0)),('seize',(0x4206,1,0,0)),('me',(0,0,0,0))): knock(n,lambda a=a:libc.ptrace(*a))\n"
        "knock('vm',lambda:libc.process_vm_readv(1,0,0,0,0,0))",
        contained=never("OPEN"),
    ),
    Attack(
        name="network out",
        code=DOORS + "def conn(a):\n  s=socket.socket(); s.settimeout(2); s.connect(a)\n"
        "knock('tcp',lambda:conn(('192.0.2.1',80))); knock('local',lambda:conn(('127.0.0.1',2375))); knock('gateway',lambda:conn(('172.17.0.1',22)))\n"
        "knock('dns',lambda:socket.getaddrinfo('example.invalid',80)); u=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); knock('udp',lambda:u.sendto(b'x',('8.8.8.8',53)))",
        contained=never("OPEN"),
    ),
    Attack(
        name="socket families that pass the network namespace by",
        code=DOORS
        + "for n,f,t,p in (('raw',2,3,1),('netlink',16,3,0),('packet',17,3,0),('vsock',40,1,0),('alg',38,5,0),('bluetooth',31,3,1),('xdp',44,3,0),('can',29,3,1),('tipc',30,5,0),('kcm',41,5,0)):\n"
        "  knock(n,lambda f=f,t=t,p=p:socket.socket(f,t,p))",
        contained=never("OPEN"),
    ),
    Attack(
        name="the engine through a unix socket",
        code=DOORS + "def conn(a):\n  s=socket.socket(socket.AF_UNIX); s.connect(a)\n"
        "for a in ('/var/run/docker.sock','/run/docker.sock','/run/containerd/containerd.sock','\\0docker'): knock(a,lambda a=a:conn(a))",
        contained=never("OPEN"),
    ),
    Attack(
        name="links out of the working folder",
        code="import os\nos.symlink('/etc','e'); os.symlink('/','root'); os.mkdir('d'); os.symlink('../../../usr','d/u'); os.symlink('/proc/1/environ','out.txt')\n"
        "try: os.link('/etc/passwd','p'); print('LINKED')\nexcept OSError: pass\ntry: open('e/x','w'); print('WROTE')\nexcept OSError: pass\nprint('linked')",
        contained=says("linked"),
    ),
    Attack(
        name="mounts, namespaces and roots",
        code=DOORS
        + "knock('unshare',lambda:libc.unshare(0x10000000)); knock('userns+net',lambda:libc.unshare(0x50000000)); knock('mount',lambda:libc.mount(b'none',b'/box',b'tmpfs',0,None))\n"
        "knock('chroot',lambda:os.chroot('/box')); knock('pivot',lambda:libc.syscall(155,b'/box',b'/box')); knock('umount',lambda:libc.umount2(b'/box',2)); knock('setns',lambda:libc.setns(0,0))",
        contained=never("OPEN"),
    ),
    Attack(
        name="devices and kernel files",
        code=DOORS
        + "knock('mknod',lambda:os.mknod('/box/dev',0o60666,os.makedev(254,0))); knock('core',lambda:open('/proc/sys/kernel/core_pattern','w'))\n"
        "knock('sysrq',lambda:open('/proc/sysrq-trigger','w')); knock('kcore',lambda:open('/proc/kcore','rb').read(4)); knock('kmem',lambda:open('/dev/mem','rb'))\n"
        "knock('cgroup',lambda:open('/sys/fs/cgroup/memory/memory.limit_in_bytes','w')); knock('release',lambda:open('/sys/fs/cgroup/release_agent','w'))\n"
        "knock('log',lambda:libc.klogctl(3,ctypes.create_string_buffer(100),100))",
        contained=never("OPEN"),
    ),
    Attack(
        name="another identity",
        code=DOORS
        + "knock('setuid',lambda:os.setuid(0)); knock('setresuid',lambda:os.setresuid(0,0,0)); knock('setgid',lambda:os.setgid(0)); knock('groups',lambda:os.setgroups([0]))\n"
        "knock('neighbour',lambda:os.setuid(os.getuid()+1))",
        contained=never("OPEN"),
    ),
    Attack(
        name="higher limits for itself",
        code=DOORS + "import resource\nfor n in ('CPU','AS','NPROC','NOFILE','FSIZE','CORE','MSGQUEUE'):\n"
        "  knock(n,lambda n=n:resource.setrlimit(getattr(resource,'RLIMIT_'+n),(1<<40,1<<40)))\n"
        "def spare(): open('/proc/self/oom_score_adj','w').write('-1000')\nknock('oom',spare); knock('nice',lambda:os.nice(-5))",
        contained=never("OPEN"),
    ),
    Attack(
        name="system calls that widen the kernel's surface",
        code=DOORS
        + "for n,a in (('io_uring',(425,8,0)),('userfaultfd',(323,0)),('bpf',(321,0,0,0)),('perf',(298,0,0,-1,-1,0)),('keyctl',(250,0,-3,0)),('x32',(0x40000000|39,)),('kexec',(246,0,0,0,0)),('handle',(304,0,0,0)),('secret',(447,0))):\n"
        "  knock(n,lambda a=a:libc.syscall(*a))",
        contained=never("OPEN"),
    ),
    Attack(
        name="System V and POSIX objects that stay",
        code=DOORS
        + "knock('shm',lambda:libc.shmget(0x77,4096,0o1666)); knock('sem',lambda:libc.semget(0x77,1,0o1666)); knock('msg',lambda:libc.msgget(0x77,0o1666)); knock('mq',lambda:libc.mq_open(b'/leak',0o102,0o666,None))",
        contained=never("OPEN"),
    ),
    Attack(
        name="a queue as a file",
        code=DOORS + "knock('mqueue',lambda:os.open('/dev/mqueue/x',os.O_CREAT|os.O_RDWR,0o600))",
        contained=never("OPEN"),
    ),
    Attack(
        name="the system's own files",
        code=DOORS
        + "import sys,json\nknock('stdlib',lambda:open(json.__file__,'a')); knock('python',lambda:open(sys.executable,'r+b')); knock('root',lambda:open('/x','w')); knock('etc',lambda:open('/etc/passwd','a')); knock('ld',lambda:open('/etc/ld.so.preload','w'))",
        contained=never("OPEN"),
    ),
    Attack(
        name="modules that lie in wait for the next job",
        code="import os\nfor d in ('/box','/tmp','/dev/shm','/tmp/.local/lib/python3.11/site-packages'):\n  os.makedirs(d,exist_ok=True)\n"
        "  for n in ('json.py','sitecustomize.py','usercustomize.py','random.py','os.py'): open(d+'/'+n,'w').write('raise SystemExit(\"POISONED\")')\nprint('set')",
        contained=says("set"),
    ),
    Attack(
        name="the interpreter changed under the next job",
        code="import builtins,sys,json,os\nbuiltins.print=lambda *a:None\njson.loads=None\nos.environ['X']='1'\nsys.modules['random']=None\nos.write(1,b'patched')",
        contained=says("patched"),
    ),
    Attack(
        name="locks and pipes left in the working folders",
        code="import os,fcntl,socket\nos.mkfifo('fifo'); s=socket.socket(socket.AF_UNIX); s.bind('/box/sock'); f=open('/dev/shm/lock','w'); fcntl.flock(f,2)\nprint('left')",
        contained=says("left"),
    ),
)
