"""The lab: real Linux hosts in namespaces of their own, for `backend="live"`.

    lab.py         starts and ends a lab; the rest runs in processes of its own
    keeper.py      the parent of the lab's other processes
    agent.py       one process for each host: it is in the host's namespace and carries out the lab's requests
    loop.py        its loop
    interfaces.py  links, addresses, neighbours, routes, sysctls
    iperf.py       flows by iperf3
    traffic.py     flows of its own, where iperf3 cannot
    datagrams.py   many datagrams in one system call
    tcp_info.py    what the kernel knows of its connections
    sampler.py     samples of that
    messages.py    what lab and agents say to each other
    plan.py        from a `Network` to what each host is to do; refuses what a kernel cannot
    kernel.py      what this kernel and machine have
    names.py       names in /run/netns
    death.py       processes that do not outlive the one that started them

A namespace lives as long as the process in it. The agents end when the lab's process closes its sockets, however that ends, and
the kernel removes namespaces and interfaces with them. Only names have to be cleaned up.
"""
