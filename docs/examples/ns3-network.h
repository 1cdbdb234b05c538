// ns3-network.h builds the networks of ns3-peer.cc: hosts with point-to-point links in a star or in a leaf-spine.
//
// The settings are those of struct Network. In a leaf-spine, hosts 0 to tor-1 are under leaf 0, and so on. The packets for
// host h take spine h mod spines, so that those of a flow stay in order.

#ifndef NS3_NETWORK_H
#define NS3_NETWORK_H

#include <map>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

// Network is a network of hosts.
struct Network {
  std::map<std::string, std::string> settings = {
      {"topology", "star"}, // or leafspine
      {"tor", "4"},         // hosts per leaf
      {"spines", "2"},
      {"rate", "10Gbps"},   // of links
      {"uplink", ""},       // rate of links between leaves and spines; "": rate
      {"delay", "500ns"},   // of links
      {"segment", "1448"},  // payload of a packet, bytes
      {"buffer", "4194304"} // of sockets, bytes
  };
  ns3::NodeContainer hosts;
  std::vector<ns3::Ipv4Address> addresses; // by host

  // Build builds the network. It returns an error, "" if there is none.
  std::string Build(uint32_t number) {
    using namespace ns3;
    Config::SetDefault("ns3::TcpSocket::SegmentSize", StringValue(settings["segment"]));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", StringValue(settings["buffer"]));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", StringValue(settings["buffer"]));
    bool star = settings["topology"] == "star";
    if (!star && settings["topology"] != "leafspine")
      return "expected topology star or leafspine, found " + settings["topology"];
    uint32_t tor = star ? number : Number("tor"), spines = star ? 0 : Number("spines");
    if (tor == 0 || (!star && spines == 0)) return "expected tor and spines of 1 or more";
    hosts.Create(number);
    NodeContainer leaves((number + tor - 1) / tor), tops(spines);
    Ipv4StaticRoutingHelper routing;
    InternetStackHelper stack;
    stack.SetRoutingHelper(routing);
    stack.Install(hosts);
    stack.Install(leaves);
    stack.Install(tops);
    PointToPointHelper link;
    link.SetChannelAttribute("Delay", StringValue(settings["delay"]));
    Ipv4AddressHelper subnet("10.0.0.0", "255.255.255.252");
    auto table = [&](Ptr<Node> node) { return routing.GetStaticRouting(node->GetObject<Ipv4>()); };
    auto connect = [&](Ptr<Node> a, Ptr<Node> b) {
      auto ends = subnet.Assign(link.Install(a, b));
      subnet.NewNetwork();
      return ends;
    };
    link.SetDeviceAttribute("DataRate", StringValue(settings["rate"]));
    for (uint32_t h = 0; h < number; h++) {
      auto ends = connect(hosts.Get(h), leaves.Get(h / tor));
      addresses.push_back(ends.GetAddress(0));
      table(hosts.Get(h))->SetDefaultRoute(ends.GetAddress(1), ends.Get(0).second);
      table(leaves.Get(h / tor))->AddHostRouteTo(addresses[h], ends.Get(1).second);
    }
    if (!settings["uplink"].empty()) link.SetDeviceAttribute("DataRate", StringValue(settings["uplink"]));
    for (uint32_t l = 0; l < leaves.GetN(); l++)
      for (uint32_t s = 0; s < spines; s++) {
        auto ends = connect(leaves.Get(l), tops.Get(s));
        for (uint32_t h = s; h < number; h += spines)
          if (h / tor == l)
            table(tops.Get(s))->AddHostRouteTo(addresses[h], ends.Get(1).second);
          else
            table(leaves.Get(l))->AddHostRouteTo(addresses[h], ends.Get(0).second);
      }
    return "";
  }

  uint32_t Number(const std::string &key) { return std::strtoul(settings[key].c_str(), nullptr, 10); }
};

#endif
