# Flow sizes of a data-mining cluster: bytes, share of flows that are not larger.
# After Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009, figure 2, at the points that pFabric
# (SIGCOMM 2013) and most studies since use: 1, 2, 3, 7, ... packets of 1460 bytes. Half of the flows are one packet. Mean 7.47 MB.
1460       0.5
2920       0.6
4380       0.7
10220      0.8
389820     0.9
3076220    0.95
97333820   0.99
973333820  1
