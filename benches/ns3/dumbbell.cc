// The dumbbell of `tidegate run reference.dumbbell` in ns-3: N CUBIC flows, 10 Gbit/s and 1 ms to the routers, 1 Gbit/s and
// 8 ms between them with a drop-tail queue of 1667 packets. Prints one line of JSON.
//
//     dumbbell --flows=10 --seconds=10 --warmUp=2

#include <ctime>
#include <iostream>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

/// Bytes that waited, summed over samples.
double g_waiting = 0;
uint64_t g_samples = 0;

void
Sample(Ptr<Queue<Packet>> queue)
{
    g_waiting += queue->GetNBytes();
    ++g_samples;
    Simulator::Schedule(MilliSeconds(10), &Sample, queue);
}

uint64_t
Received(const ApplicationContainer& sinks)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sinks.GetN(); ++i)
    {
        bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    return bytes;
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t flows = 10;
    double seconds = 10;
    double warmUp = 2;
    CommandLine cmd(__FILE__);
    cmd.AddValue("flows", "CUBIC flows", flows);
    cmd.AddValue("seconds", "simulated seconds", seconds);
    cmd.AddValue("warmUp", "seconds before the measurement", warmUp);
    cmd.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(64 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(64 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("1ms"));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100000p"));
    PointToPointHelper middle;
    middle.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    middle.SetChannelAttribute("Delay", StringValue("8ms"));
    middle.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1667p"));

    NodeContainer routers(2);
    NodeContainer sources(flows);
    NodeContainer targets(flows);
    InternetStackHelper stack;
    stack.InstallAll();

    // Without queue discs: all that waits is in the devices' queues.
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    NetDeviceContainer bottleneck = middle.Install(routers);
    addresses.Assign(bottleneck);
    ApplicationContainer sinks;
    for (uint32_t i = 0; i < flows; ++i)
    {
        addresses.NewNetwork();
        addresses.Assign(access.Install(sources.Get(i), routers.Get(0)));
        addresses.NewNetwork();
        Ipv4InterfaceContainer there = addresses.Assign(access.Install(targets.Get(i), routers.Get(1)));
        InetSocketAddress to(there.GetAddress(0), 5000);
        sinks.Add(PacketSinkHelper("ns3::TcpSocketFactory", to).Install(targets.Get(i)));
        BulkSendHelper source("ns3::TcpSocketFactory", to);
        source.SetAttribute("SendSize", UintegerValue(64 * 1448));
        source.Install(sources.Get(i)).Start(Seconds(double(i) / flows));
    }
    for (uint32_t i = 0; i < NodeList::GetNNodes(); ++i)
    {
        Ptr<Node> node = NodeList::GetNode(i);
        TrafficControlHelper none;
        for (uint32_t j = 0; j < node->GetNDevices(); ++j)
        {
            Ptr<TrafficControlLayer> control = node->GetObject<TrafficControlLayer>();
            if (control && control->GetRootQueueDiscOnDevice(node->GetDevice(j)))
            {
                none.Uninstall(node->GetDevice(j));
            }
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Ptr<Queue<Packet>> queue = DynamicCast<PointToPointNetDevice>(bottleneck.Get(0))->GetQueue();
    uint64_t before = 0;
    Simulator::Schedule(Seconds(warmUp), [&] { before = Received(sinks); });
    Simulator::Schedule(Seconds(warmUp), &Sample, queue);
    Simulator::Stop(Seconds(seconds));
    std::clock_t began = std::clock();
    Simulator::Run();
    double cpu = double(std::clock() - began) / CLOCKS_PER_SEC;
    double goodput = 8e-6 * (Received(sinks) - before) / (seconds - warmUp);
    double waiting = g_samples ? g_waiting / g_samples : 0;
    std::cout << "{\"goodput_mbps\": " << goodput << ", \"queue_delay_ms_mean\": " << waiting * 8 / 1e6
              << ", \"packets\": " << queue->GetTotalReceivedPackets() << ", \"cpu_s\": " << cpu << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
