// ns3-flows runs flows of TCP on ns-3, all scheduled before the run, without the protocol of docs/examples/ns3-peer.cc,
// whose network it has. ns-3's application for bulk data sends. It reads lines "START SOURCE TARGET BYTES", with the start in picoseconds, and prints a line for each: the
// time at which its last byte arrived, in picoseconds. Arguments: the number of hosts, then settings KEY=VALUE.

#include <iostream>

#include "../../../docs/examples/ns3-network.h"
#include "ns3/applications-module.h"

using namespace ns3;

// Flow is a flow and the bytes of it that have not arrived.
struct Flow {
  int64_t start, end;
  uint32_t source, target;
  uint64_t bytes;

  void Receive(Ptr<Socket> socket) {
    while (Ptr<Packet> packet = socket->Recv()) {
      if (packet->GetSize() == 0) return;
      bytes -= packet->GetSize();
      if (bytes == 0) end = Simulator::Now().GetPicoSeconds();
    }
  }

  void Accept(Ptr<Socket> socket, const Address &) { socket->SetRecvCallback(MakeCallback(&Flow::Receive, this)); }
};

int main(int argc, char **argv) {
  Time::SetResolution(Time::PS);
  Network network;
  for (int i = 2; i < argc; i++) {
    std::string text = argv[i];
    size_t at = text.find('=');
    network.settings[text.substr(0, at)] = text.substr(at + 1);
  }
  std::string wrong = network.Build(std::strtoul(argc > 1 ? argv[1] : "", nullptr, 10));
  if (!wrong.empty()) {
    std::cerr << wrong << std::endl;
    return 1;
  }
  std::vector<Flow> flows;
  for (Flow f{0, -1, 0, 0, 0}; std::cin >> f.start >> f.source >> f.target >> f.bytes;) flows.push_back(f);
  std::map<uint32_t, uint16_t> ports; // by target, as in ns3-peer.cc: queues of switches serve flows by a hash of ports
  for (Flow &f : flows) {
    uint16_t port = 1024 + ports[f.target]++;
    auto sink = Socket::CreateSocket(network.hosts.Get(f.target), TcpSocketFactory::GetTypeId());
    sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
    sink->Listen();
    sink->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address &>(), MakeCallback(&Flow::Accept, &f));
    BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(network.addresses[f.target], port));
    sender.SetAttribute("MaxBytes", UintegerValue(f.bytes));
    sender.SetAttribute("SendSize", UintegerValue(65536));
    auto bulk = sender.Install(network.hosts.Get(f.source)).Get(0);
    bulk->SetStartTime(PicoSeconds(f.start));
  }
  Simulator::Run();
  for (Flow &f : flows) std::cout << f.end << "\n";
  Simulator::Destroy();
}
